package pgsql

import (
	"time"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nodeLocation is the location of a node: its own, or the leftmost of its children.
func nodeLocation(n *pg_query.Node) int32 {
	if n.GetNode() == nil {
		return -1
	}
	switch x := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		return x.ColumnRef.Location
	case *pg_query.Node_AConst:
		return x.AConst.Location
	case *pg_query.Node_ParamRef:
		return x.ParamRef.Location
	case *pg_query.Node_FuncCall:
		return x.FuncCall.Location
	case *pg_query.Node_AExpr:
		return leftmost(nodeLocation(x.AExpr.Lexpr), x.AExpr.Location)
	case *pg_query.Node_TypeCast:
		return leftmost(nodeLocation(x.TypeCast.Arg), x.TypeCast.Location)
	case *pg_query.Node_SubLink:
		return leftmost(nodeLocation(x.SubLink.Testexpr), x.SubLink.Location)
	case *pg_query.Node_CollateClause:
		return nodeLocation(x.CollateClause.Arg)
	case *pg_query.Node_AIndirection:
		return nodeLocation(x.AIndirection.Arg)
	}
	m := n.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil || fd.Kind() != protoreflect.MessageKind {
		return -1
	}
	inner := m.Get(fd).Message()
	if loc := inner.Descriptor().Fields().ByName("location"); loc != nil {
		return int32(inner.Get(loc).Int())
	}
	return -1
}

func leftmost(a, b int32) int32 {
	if a < 0 {
		return b
	}
	if b < 0 {
		return a
	}
	return min(a, b)
}

// eachNode visits every message of a tree.
func eachNode(m protoreflect.Message, visit func(any)) {
	visit(m.Interface())
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
			l := v.List()
			for i := 0; i < l.Len(); i++ {
				eachNode(l.Get(i).Message(), visit)
			}
		case fd.Kind() == protoreflect.MessageKind && !fd.IsMap():
			eachNode(v.Message(), visit)
		}
		return true
	})
}

var far = time.FixedZone("far", 11*3600+17*60)

// farZone is a zone that no literal means.
func farZone() *time.Location { return far }
