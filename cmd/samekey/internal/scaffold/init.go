package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Options are the settings of [Init].
type Options struct {
	// Dir is the folder to write to. Default: the current folder.
	Dir string
	// Module is the path of the new module, if Init makes one. Default: the folder's name.
	// Module must be "" if Dir is in a module.
	Module string
	// Version is the version of samekey for a module that doesn't require samekey yet.
	// Default: "latest".
	Version string
	// Example is one of [Examples]. Init writes it in place of the first handler. If
	// Example is "", Init keeps the folder's example. If the folder has none, Init
	// writes the first handler.
	Example string
}

// Result is what [Init] did. Paths are relative to the folder.
type Result struct {
	Module  string // the module's path
	Example string // the example that was written; "" if it was the first handler
	// Created lists the files that Init wrote. Unchanged lists the files that already
	// had the contents of this version. LeftAlone lists the files that had other
	// contents.
	Created, LeftAlone, Unchanged []string
	// Required says that go.mod and go.sum were changed.
	Required bool
	// Old lists the required modules of AWS services that are too old for today's
	// aws-sdk-go-v2. An old module compiles, but each call to the service fails.
	Old []string
}

// Init makes a module if the folder has none, writes the missing files, and adds to the
// module what the files require. Of the user's files, Init changes only go.mod and
// go.sum. If Init fails or ctx ends, the folder is as before.
func Init(ctx context.Context, opts Options) (Result, error) {
	if opts.Dir == "" {
		opts.Dir = "."
	}
	if opts.Version == "" {
		opts.Version = "latest"
	}
	mod, err := readModule(ctx, opts.Dir)
	if err != nil {
		return Result{}, err
	}
	if mod.path != "" && opts.Module != "" {
		return Result{}, fmt.Errorf("this folder is already the module %s: leave out --module", mod.path)
	}
	w := &writer{dir: opts.Dir}
	result, err := w.init(ctx, opts, mod)
	if err != nil {
		return Result{}, errors.Join(err, w.undo())
	}
	return result, nil
}

func (w *writer) init(ctx context.Context, opts Options, mod module) (Result, error) {
	if mod.path == "" {
		gomod, path, err := newModule(ctx, opts)
		if err != nil {
			return Result{}, err
		}
		mod.path = path
		if _, err := w.create("go.mod", gomod); err != nil {
			return Result{}, err
		}
	}
	result := Result{Module: mod.path}
	known, err := readMemory(opts.Dir)
	switch {
	case err != nil:
		return Result{}, err
	case known != nil && opts.Example != "" && opts.Example != known.example:
		return Result{}, fmt.Errorf("samekey init has already written %s here: leave out --example, or use another folder", cmp.Or(known.example, "a first handler"))
	case known != nil:
		opts.Example = known.example
	}
	result.Example = opts.Example
	all, err := files(mod.path, opts.Example)
	if err != nil {
		return Result{}, err
	}
	for _, f := range all {
		created, err := w.create(f.path, f.text)
		if err != nil {
			return Result{}, err
		}
		text, err := os.ReadFile(w.path(f.path))
		switch {
		case err != nil:
			return Result{}, err
		case created:
			result.Created = append(result.Created, f.path)
		case sum(string(text)) == sum(f.text):
			result.Unchanged = append(result.Unchanged, f.path)
		default:
			result.LeftAlone = append(result.LeftAlone, f.path)
		}
	}
	if !mod.complete() {
		if err := w.keep("go.mod", "go.sum"); err != nil {
			return Result{}, err
		}
		result.Required = true
		if err := opts.require(ctx, mod); err != nil {
			return Result{}, err
		}
	}
	result.Old = oldServices(ctx, opts.Dir)
	if err := w.keep(memoryFile); err != nil {
		return Result{}, err
	}
	return result, os.WriteFile(w.path(memoryFile), []byte(remember(all, opts.Example)), 0o644) //nolint:gosec // everybody may read it
}

// newModule lets the go command make a go.mod. It returns the text of go.mod, and the
// module's path.
func newModule(ctx context.Context, opts Options) (gomod, path string, err error) {
	path = opts.Module
	if path == "" {
		dir, err := filepath.Abs(opts.Dir)
		if err != nil {
			return "", "", err
		}
		path = filepath.Base(dir)
	}
	// The go command runs in a scratch folder, so that a wrong path leaves nothing in
	// opts.Dir.
	scratch, err := os.MkdirTemp("", "samekey-init-*")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if _, err := goCommand(ctx, scratch, "mod", "init", path); err != nil {
		return "", "", fmt.Errorf("%q is not a module path; give a path with --module, such as example.com/orders: %w", path, err)
	}
	text, err := os.ReadFile(filepath.Join(scratch, "go.mod"))
	return string(text), path, err
}

// writer writes files and can undo all writes.
type writer struct {
	dir     string
	created []string          // created files and folders, in order
	kept    map[string][]byte // contents before the change; nil for a file that didn't exist
}

func (w *writer) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// writer.create writes a file, unless the file exists, and reports whether it wrote the
// file.
func (w *writer) create(name, text string) (bool, error) {
	if err := w.folder(filepath.Dir(w.path(name))); err != nil {
		return false, err
	}
	f, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // source code
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w.created = append(w.created, w.path(name))
	_, err = f.WriteString(text)
	return true, errors.Join(err, f.Close())
}

// writer.folder makes a folder and its parent folders.
func (w *writer) folder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.folder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // of source code
		return err
	}
	w.created = append(w.created, dir)
	return nil
}

// writer.keep remembers the contents of files, for undo.
func (w *writer) keep(names ...string) error {
	if w.kept == nil {
		w.kept = make(map[string][]byte)
	}
	for _, name := range names {
		text, err := os.ReadFile(w.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		w.kept[w.path(name)] = text
	}
	return nil
}

func (w *writer) undo() error {
	var errs []error
	for path, text := range w.kept {
		if text == nil {
			errs = append(errs, remove(path))
		} else {
			errs = append(errs, os.WriteFile(path, text, 0o644)) //nolint:gosec // as the go command writes it
		}
	}
	for _, path := range slices.Backward(w.created) {
		errs = append(errs, remove(path))
	}
	return errors.Join(errs...)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
