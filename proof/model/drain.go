package model

// Drain and sweep: jobs are delivered from the images that the stream or a scan
// shows, however old, and then acknowledged.

type drainStep uint8

const (
	idle drainStep = iota
	acks
	acksLast // the image was finished, and these are all its jobs
	letsGo
)

// deliver hands jobs of an image to their sink.
//
// Code: stream.Drain.deliver
func (m *Model) deliver(w *world, op uint8, jobs Jobs) {
	if jobs&^w.Ops[op].Committed != 0 {
		w.breaks(JobUncommitted)
	}
	w.Ops[op].Delivered |= jobs
}

// remove takes jobs out of the record.
func (m *Model) remove(w *world, jobs Jobs) {
	r, op := &w.Record, w.op()
	if r.Jobs&jobs&^op.Delivered != 0 {
		w.breaks(JobLost)
	}
	op.Acked |= r.Jobs & jobs
	r.Jobs &^= jobs
}

// acknowledge removes delivered jobs.
//
// Code: stream.jobWriter.acknowledge, stream.ackCondition
// Condition: id = :id AND attribute_exists(jobs)
func (m *Model) acknowledge(w *world) {
	d := &w.Drain
	if !m.same(w) {
		*d = drain{}
		return
	}
	m.remove(w, d.Jobs)
	if d.Step = letsGo; !m.on(Clean) || !w.noJobsLeft() {
		*d = drain{}
	}
}

// acknowledgeLast removes the last jobs of a finished record and lets it go, in one
// write.
//
// Code: stream.jobWriter.acknowledge, stream.lastCondition, stream.letGoUpdate
// Condition: st = :done
func (m *Model) acknowledgeLast(w *world) {
	r, d := &w.Record, &w.Drain
	if m.same(w) && r.State == Done && r.Jobs&d.Jobs == d.Jobs && (r.Jobs == d.Jobs || !m.on(AckSize)) {
		m.remove(w, AllJobs)
		m.keeps(r, KeepNothing)
		*d = drain{}
		return
	}
	d.Step = acks
	if !m.same(w) || r.Jobs&d.Jobs == 0 && (!m.on(Clean) || !w.noJobsLeft()) {
		*d = drain{}
	}
}

// letGo lets a finished record expire that is kept for jobs it no longer has.
//
// Code: stream.jobWriter.letGo, stream.letGoCondition, state.NoJobsLeft
// Condition: id = :id AND st = :done AND keep = :jobs AND attribute_exists(until_s) AND size(jobs) = :zero
func (m *Model) letGo(w *world) {
	if m.same(w) && w.noJobsLeft() {
		m.keeps(&w.Record, KeepNothing)
	}
	w.Drain = drain{}
}

// same is the condition id = :id.
func (m *Model) same(w *world) bool {
	return w.Record.State != None && (w.Record.ID == w.Drain.Op || !m.on(AckID))
}

func (w *world) noJobsLeft() bool {
	return w.Record.State == Done && w.Record.Keep == KeepJobs && w.Record.Jobs == 0
}

// works carries out the drain's next write.
func (m *Model) drains(w *world) Step {
	s := Step{Op: w.Drain.Op}
	switch w.Drain.Step {
	case acksLast:
		s.What = AcknowledgesLast
		m.acknowledgeLast(w)
	case acks:
		s.What = Acknowledges
		m.acknowledge(w)
	default:
		s.What = LetsGo
		m.letGo(w)
	}
	return s
}

// drainSteps are the next steps of drain and sweep.
//
// Code: stream.Drain.Handle, stream.Sweep.Run
func (m *Model) drainSteps(w world, emit emit) {
	if w.Drain.Step != idle {
		w.at(w.Ops[w.Drain.Op].Side)
		next := w
		emit(m.drains(&next), next)
		if w.Left.DrainDies > 0 {
			w.Left.DrainDies--
			w.Drain = drain{}
			emit(Step{What: DrainDies}, w)
		}
		return
	}
	for op := uint8(1); op <= most; op++ {
		o := w.Ops[op]
		m.delivers(w, op, o.Committed&Early, acks, emit) // from the image of a commit
		if o.Answer != 0 {
			m.delivers(w, op, o.Image, acksLast, emit)      // from the image of the finish: all of them,
			m.delivers(w, op, o.Image&Late, acksLast, emit) // or the new ones
		}
		if o.Image == AllJobs && m.trace { // from later images, or with other jobs in the image; the explorer leaves them out
			m.delivers(w, op, Early, acksLast, emit)
			m.delivers(w, op, Late, acks, emit)
		}
	}
	for range w.places() {
		if m.on(Clean) && w.noJobsLeft() {
			next := w
			next.Drain = drain{Step: letsGo, Op: w.Record.ID}
			emit(Step{What: SweepFinds, Op: w.Record.ID}, next)
		}
		w.at(1 - w.Side)
	}
}

func (m *Model) delivers(w world, op uint8, jobs Jobs, then drainStep, emit emit) {
	if jobs == 0 {
		return
	}
	w.at(w.Ops[op].Side)
	if jobs&^w.Ops[op].Delivered == 0 {
		if w.Left.Twice == 0 {
			return
		}
		w.Left.Twice--
	}
	s := Step{What: Delivers, Op: op, Jobs: jobs}
	if !m.on(AckLast) {
		if w.Record.State != None && w.Record.ID == op {
			m.remove(&w, jobs)
		}
		emit(s, w)
		return
	}
	m.deliver(&w, op, jobs)
	w.Drain = drain{Step: then, Op: op, Jobs: jobs}
	emit(s, w)
}
