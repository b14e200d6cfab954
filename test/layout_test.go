package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nordisk/skade-pg/"

type goPackage struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// packages lists the repository's packages as `go list` sees them, tests excluded.
func packages(t *testing.T, env ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,Imports,Deps", "./...")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// importRules say who may import whom. A package is ruled by the first rule whose prefix it has; only imports from
// this module and the modules named in `never` are looked at.
var importRules = []struct {
	pkg   string
	may   []string // prefixes inside the module
	never []string // full import path prefixes
	why   string
}{
	{"internal/testkit", []string{"internal/", "catalog", "liveset", "warehouse"}, cgoModules, "the kit opens the cores for tests of the cores"},
	{"internal/", []string{"internal/"}, cgoModules, "internal packages are leaves that every layer may use"},
	{"catalog", []string{"catalog", "internal/"}, cgoModules, "names and commits know nothing of data files' contents"},
	{"liveset", []string{"catalog", "internal/"}, cgoModules, "a snapshot as files and bitmaps serves every reader; it knows none of them"},
	{"warehouse", []string{"liveset", "catalog", "internal/"}, cgoModules, "siblings do not import each other"},
	{"changelog", []string{"liveset", "catalog", "internal/"}, cgoModules, "siblings do not import each other"},
	{"lookup", []string{"liveset", "catalog", "internal/"}, cgoModules, "siblings do not import each other"},
	{"lineage", []string{"liveset", "catalog", "internal/"}, cgoModules, "siblings do not import each other"},
	{"examples/embedded", []string{"catalog", "liveset", "warehouse", "changelog", "lookup", "lineage", "internal/storeio"}, cgoModules, "the cores are a library: a program uses them without a server"},
	{"pgwire", []string{"internal/"}, cgoModules, "the protocol server declares the session it needs and is tested with a scripted one"},
	{"engine/pgsql", []string{"internal/", "engine/pgsql"}, []string{"github.com/duckdb/"}, "rewriting is a pure function over syntax trees"},
	{"engine/pgcatalog", []string{"internal/", "engine/pgsql", "engine/pgcatalog"}, []string{"github.com/duckdb/"}, "system catalogs are data and SQL text; engine/duck runs it"},
	{"engine/duck", []string{"internal/", "engine/duck"}, []string{"github.com/pganalyze/"}, "the one place that knows DuckDB knows no SQL session"},
	{"engine/lockmgr", nil, cgoModules, "who waits for whom is a question about tags and modes alone"},
	{"sqlfuncs", []string{"internal/", "catalog", "liveset", "warehouse", "changelog", "lookup", "lineage"}, cgoModules, "an SQL function is a signature, checks and a call into a core"},
	{"engine", []string{"internal/", "pgwire", "engine/", "sqlfuncs", "catalog", "liveset", "warehouse", "changelog", "lookup", "lineage"}, []string{"github.com/duckdb/"}, "engine knows both sides, DuckDB through engine/duck only"},
}

var cgoModules = []string{"github.com/duckdb/", "github.com/pganalyze/"}

func TestImportDirections(t *testing.T) {
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module)
		i := slices.IndexFunc(importRules, func(r struct {
			pkg   string
			may   []string
			never []string
			why   string
		}) bool {
			return rel == strings.TrimSuffix(r.pkg, "/") || strings.HasPrefix(rel, strings.TrimSuffix(r.pkg, "/")+"/")
		})
		if i < 0 {
			continue // cmd and test wire everything
		}
		rule := importRules[i]
		for _, imp := range p.Imports {
			for _, never := range rule.never {
				if strings.HasPrefix(imp, never) {
					t.Errorf("%s imports %s: %s", rel, imp, rule.why)
				}
			}
			ours, ok := strings.CutPrefix(imp, module)
			if !ok {
				continue
			}
			if !slices.ContainsFunc(rule.may, func(may string) bool {
				may = strings.TrimSuffix(may, "/")
				return ours == may || strings.HasPrefix(ours, may+"/")
			}) {
				t.Errorf("%s imports %s: %s", rel, ours, rule.why)
			}
		}
	}
}

// TestCoresNeedNoCgo: the dependency closure of the cores holds none of the cgo modules.
func TestCoresNeedNoCgo(t *testing.T) {
	cores := []string{"catalog", "warehouse", "liveset", "changelog", "lookup", "lineage", "examples/embedded"}
	seen := 0
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(cores, rel) {
			continue
		}
		seen++
		for _, dep := range p.Deps {
			for _, m := range cgoModules {
				if strings.HasPrefix(dep, m) {
					t.Errorf("%s depends on %s", rel, dep)
				}
			}
		}
	}
	if seen != len(cores) {
		t.Errorf("found %d of the %d cores", seen, len(cores))
	}
}

func TestEveryPackageHasDoc(t *testing.T) {
	for _, p := range packages(t) {
		if p.Name == "main" {
			continue
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "doc.go")); err != nil {
			t.Errorf("%s has no doc.go", strings.TrimPrefix(p.ImportPath, module))
		}
	}
}

func TestMainIsSmall(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root(t), "cmd/skade-pg/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n >= 25 {
		t.Errorf("cmd/skade-pg/main.go has %d lines, 25 are too many", n)
	}
}

// TestTopLevel: a stranger sees the parts at once; a new folder needs a part that has no home.
func TestTopLevel(t *testing.T) {
	want := []string{"catalog", "changelog", "cmd", "docs", "engine", "examples", "internal", "lineage", "liveset", "lookup", "pgwire", "sqlfuncs", "test", "warehouse"}
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var got []string
	for f := range strings.Lines(string(out)) {
		if dir, _, ok := strings.Cut(strings.TrimSpace(f), "/"); ok && !strings.HasPrefix(dir, ".") && !slices.Contains(got, dir) {
			got = append(got, dir)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("top level:\n got %v\nwant %v", got, want)
	}
}
