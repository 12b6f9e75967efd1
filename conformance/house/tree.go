// Package house holds the rules of this repository as tests: import direction, file length, package
// comments, names, request codes that are routed or excused, and dependencies that have a reason.
// The rules are told in CONTRIBUTING.md; a failing test names the file and the rule.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// source is one Go file of the repository.
type source struct {
	Path    string // slash-separated, from the root
	Dir     string
	Text    string
	Lines   int
	Package string
	Imports []string
	Doc     bool // has a package comment
}

// root finds the repository's root: the nearest folder upwards that holds this module's go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module rocketd\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fs.ErrNotExist
		}
		dir = up
	}
}

// sources parses every Go file below root, build folders and hidden folders left out.
func sources(root string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			n := d.Name()
			if p != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "target" && hasPom(filepath.Dir(p)) || n == "bin" || n == "build" || n == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		s, err := parse(root, p)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

func hasPom(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "pom.xml"))
	return err == nil
}

func parse(root, path string) (source, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, b, parser.ParseComments|parser.ImportsOnly)
	if err != nil {
		return source{}, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return source{}, err
	}
	rel = filepath.ToSlash(rel)
	s := source{
		Path: rel, Dir: filepath.ToSlash(filepath.Dir(rel)), Text: string(b),
		Lines: strings.Count(string(b), "\n"), Package: f.Name.Name, Doc: hasDoc(f),
	}
	for _, i := range f.Imports {
		s.Imports = append(s.Imports, strings.Trim(i.Path.Value, `"`))
	}
	return s, nil
}

func hasDoc(f *ast.File) bool { return f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" }
