package storeio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxResolved bounds the directories whose links were followed.
const maxResolved = 4096

// roots decides which paths an FS may touch.
type roots struct {
	home  string
	dirs  []string // with their links followed
	bound bool

	mu       sync.Mutex
	resolved map[string]string // existing directories, links followed
}

func (r *roots) init(home string, dirs []string) {
	r.bound = home != "" || len(dirs) > 0
	r.resolved = map[string]string{}
	if home != "" {
		r.home = filepath.Clean(PathOf(home))
	}
	for _, d := range dirs {
		d = filepath.Clean(PathOf(d))
		if real, err := filepath.EvalSymlinks(d); err == nil {
			d = real
		}
		r.dirs = append(r.dirs, d)
	}
}

// within reports whether p is dir or below it. Both are clean.
func within(dir, p string) bool {
	return p == dir || (strings.HasPrefix(p, dir) && (strings.HasSuffix(dir, "/") || p[len(dir)] == filepath.Separator))
}

// allow reports ErrOutsideRoots for a clean path that leads outside.
func (r *roots) allow(p string) error {
	if !r.bound || (r.home != "" && within(r.home, p)) {
		return nil
	}
	real, err := r.follow(p)
	if err != nil {
		return err
	}
	for _, d := range r.dirs {
		if within(d, real) {
			return nil
		}
	}
	return ErrOutsideRoots
}

// follow returns a path with its links followed. What does not exist yet is taken as written.
func (r *roots) follow(p string) (string, error) {
	dir, err := r.followDir(filepath.Dir(p))
	if err != nil {
		return "", err
	}
	full := filepath.Join(dir, filepath.Base(p))
	st, err := os.Lstat(full)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		return full, nil // the operation itself tells what is wrong
	}
	full, err = filepath.EvalSymlinks(full)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrOutsideRoots // a dangling link leads nowhere that could be checked
	}
	return full, err
}

func (r *roots) followDir(dir string) (string, error) {
	r.mu.Lock()
	real, ok := r.resolved[dir]
	r.mu.Unlock()
	if ok {
		return real, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		if _, lerr := os.Lstat(dir); lerr == nil {
			return "", ErrOutsideRoots
		}
		parent, err := r.followDir(filepath.Dir(dir))
		return filepath.Join(parent, filepath.Base(dir)), err
	}
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.resolved) >= maxResolved {
		clear(r.resolved)
	}
	r.resolved[dir] = real
	return real, nil
}

// Allowed reports whether FS may touch a location: nil, ErrOutsideRoots or ErrNotLocal in a *fs.PathError.
func (f *FS) Allowed(location string) error {
	_, err := f.path("open", location)
	return err
}

// Resolve returns the path of a location for a reader outside this package, which follows no links: links below the roots are followed
// already. Errors as Allowed's.
func (f *FS) Resolve(location string) (string, error) {
	p, err := f.path("open", location)
	if err != nil || !f.roots.bound || (f.roots.home != "" && within(f.roots.home, p)) {
		return p, err
	}
	return f.roots.follow(p)
}

// Roots returns the directories besides Home that may be touched, with their links followed.
func (f *FS) Roots() []string { return append([]string(nil), f.roots.dirs...) }
