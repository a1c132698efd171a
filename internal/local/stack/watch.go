package stack

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/internal/local/gosource"
	"github.com/samekey/samekey/internal/local/sam"
)

// watchEvery is the time between two checks. The watcher acts on a change only when two
// checks in a row find the same state, because an editor or go build may still be
// writing during the first.
const watchEvery = 200 * time.Millisecond

// watcher reloads a changed template, and builds and restarts changed functions.
type watcher struct {
	s        *Stack
	files    []string // files of the running template and its nested templates
	template watched
	// functions are the watched functions, keyed by logical id.
	functions map[string]*watchedFunction
}

// watched is a set of files under watch.
type watched struct {
	acted, last gosource.Stamp // state at the last action, and at the last check
}

// watched.changed reports whether the files have changed since the last action, but not
// since the last check.
func (w *watched) changed(now gosource.Stamp) bool {
	quiet := maps.Equal(now, w.last)
	w.last = now
	return quiet && !maps.Equal(now, w.acted)
}

// watched.seen notes that the watcher acts on this state.
func (w *watched) seen(now gosource.Stamp) { w.acted, w.last = now, now }

type watchedFunction struct {
	watched
	f       *function
	inputs  gosource.Inputs // the sources, if the stack builds the function
	program gosource.Stamp  // the program's file at the last restart
	failed  bool            // the last build failed
}

func (w *watchedFunction) stamp() gosource.Stamp {
	_, built := sourceOf(w.f.def)
	switch {
	case built && w.failed:
		return w.inputs.StampModules()
	case built:
		return w.inputs.Stamp()
	default:
		return programStamp(w.f.def)
	}
}

func programStamp(def sam.Function) gosource.Stamp {
	s := make(gosource.Stamp)
	s.File(def.Bootstrap)
	return s
}

// newWatcher returns a watcher of a template that has just been read.
func newWatcher(s *Stack, t *sam.Template) *watcher {
	w := &watcher{s: s, files: t.Files()}
	w.template.seen(w.templateStamp())
	return w
}

func (w *watcher) start(ctx context.Context) {
	w.follow()
	done := make(chan struct{})
	w.s.onClose(func() error {
		<-done
		return nil
	})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
}

func (w *watcher) templateStamp() gosource.Stamp {
	s := make(gosource.Stamp)
	for _, file := range w.files {
		s.File(file)
	}
	return s
}

// watcher.follow begins to watch the running functions.
func (w *watcher) follow() {
	before := w.functions
	w.functions = make(map[string]*watchedFunction)
	for _, f := range w.s.running() {
		next := before[f.def.ID]
		if next == nil || next.f != f {
			next = &watchedFunction{f: f, inputs: f.code.inputs}
			next.seen(f.code.stamp)
			next.program = programStamp(f.def)
		}
		w.functions[f.def.ID] = next
	}
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := w.templateStamp(); w.template.changed(now) {
			w.template.seen(now)
			w.reload(ctx)
		}
		for _, f := range w.functions {
			if now := f.stamp(); f.changed(now) {
				f.seen(now)
				f.renew(ctx)
			}
		}
	}
}

// watchedFunction.renew builds the function. If the stack doesn't build the function,
// renew checks the new program with checkBinary instead. After a failure, the old
// program stays. After a success, renew ends the processes of the old program, unless
// the program's file is the same as at the last restart. Stack.redeploy may also have
// replaced the file.
func (w *watchedFunction) renew(ctx context.Context) {
	begin := time.Now()
	pkg, built := sourceOf(w.f.def)
	if !built {
		if err := checkBinary(w.f.def.Bootstrap); err != nil {
			w.f.log.ErrorContext(ctx, "the function keeps its old program", "error", err)
			return
		}
		w.f.log.InfoContext(ctx, "restarted", "ended", w.f.lambda.Restart())
		return
	}
	err := w.build(ctx, pkg)
	w.failed = err != nil
	program := programStamp(w.f.def)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		w.f.log.ErrorContext(ctx, "the function keeps its old program")
		w.f.tell(err)
	case !maps.Equal(program, w.program):
		w.program = program
		ended := w.f.lambda.Restart()
		w.f.log.InfoContext(ctx, "built and restarted", "ended", ended, "took", time.Since(begin).Round(time.Millisecond))
	}
}

// watchedFunction.build builds the function. It takes each stamp before the build, so
// that a change during the build causes another build. After a failed build, the stamp
// covers more files ([watchedFunction.stamp]).
func (w *watchedFunction) build(ctx context.Context, pkg gosource.Package) error {
	before := w.inputs.StampModules()
	inputs, err := pkg.Inputs(ctx)
	if err == nil {
		w.inputs, before = inputs, inputs.StampModules()
		w.seen(inputs.Stamp())
		err = pkg.Build(ctx, w.f.def.Bootstrap)
	}
	if err != nil {
		w.seen(before)
	}
	return err
}

// watcher.reload reads the template again and runs it. If the new template has an
// error, the old template keeps running.
func (w *watcher) reload(ctx context.Context) {
	begin := time.Now()
	template, err := w.s.readTemplate(ctx)
	if err == nil {
		read := newWatcher(w.s, template)
		if err = w.s.redeploy(ctx, template); err == nil && !slices.Equal(read.files, w.files) {
			w.files, w.template = read.files, read.template
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			w.s.log.ErrorContext(ctx, "the stack keeps the old template", "error", err)
		}
		return
	}
	w.follow()
	w.s.log.InfoContext(ctx, "the changed template runs", "took", time.Since(begin).Round(time.Millisecond))
}
