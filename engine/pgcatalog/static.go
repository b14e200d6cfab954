package pgcatalog

type relationSet struct {
	list   []*SystemRelation
	byName map[string]*SystemRelation
}

func catalogRelations() *relationSet { return &relationSet{} }

var catalogFunctions []CatalogFunction
