package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultDollars = 1.0
	DefaultLimit   = 75 * time.Minute
	// removal is how long the removal may take.
	removal = 20 * time.Minute
	// Prefix begins the names of all that a run makes.
	Prefix = "samekey-prove-"
)

// Options bound a run.
type Options struct {
	Run     string        // its name; "" is random
	Source  string        // the folder of a checkout
	Dollars float64       // at most; 0 is DefaultDollars
	Limit   time.Duration // of the time until the removal; 0 is DefaultLimit
	Keep    bool          // the stack
	Now     func() time.Time
	Tell    func(format string, args ...any) // progress

	build func(context.Context, Options, Site) (App, error)
}

func (o Options) withDefaults() Options {
	if o.Run == "" {
		o.Run = Prefix + strings.ToLower(rand.Text()[:12])
	}
	if o.Dollars == 0 {
		o.Dollars = DefaultDollars
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tell == nil {
		o.Tell = func(string, ...any) {}
	}
	if o.build == nil {
		o.build = buildApp
	}
	return o
}

// Plan is a run before it begins.
type Plan struct {
	opt    Options
	site   Site
	claims []Claim
	Cost   Cost // at most
	app    App
}

// warming is the first booking.
var warming = Cost{Bookings: tries}

// setup are the calls that deploy and remove a stack.
var setup = Cost{Calls: 1500}

// Make plans a run. It fails if the run may cost more than it is allowed to.
func Make(site Site, claims []Claim, opt Options) (*Plan, error) {
	p := &Plan{opt: opt.withDefaults(), site: site, claims: claims}
	// The stack lives until the removal is done, which has a limit of its own.
	p.Cost = setup.plus(warming).plus(Cost{Hours: (p.opt.Limit + removal).Hours()})
	for _, c := range claims {
		p.Cost = p.Cost.plus(c.Cost)
	}
	if most := p.Cost.Dollars(); most > p.opt.Dollars {
		return nil, fmt.Errorf("the run may cost %.2f dollars, and --max-dollars is %.2f", most, p.opt.Dollars)
	}
	return p, nil
}

// Run is the name of the run, and of its stack.
func (p *Plan) Run() string { return p.opt.Run }

// Expires is when the run is over for certain, and its resources are leftovers.
func (p *Plan) Expires() time.Time { return p.opt.Now().Add(p.opt.Limit + removal) }

// String tells people what will be done.
func (p *Plan) String() string {
	after := "removes all of it"
	if p.opt.Keep {
		after = "leaves all of it"
	}
	return fmt.Sprintf("This makes the stack %s in %s: Rocket Rides with its table, worker and queues, a payment provider's stand-in, "+
		"an HTTP API, a REST API and a function URL that are open to everybody meanwhile, and a bucket with their programs. It examines %d claims, for at most %s, costs at most %.2f dollars, and %s. Its credentials have to last for %s.",
		p.opt.Run, p.site.Where(), len(p.claims), p.opt.Limit, p.Cost.Dollars(), after, p.opt.Limit+removal)
}

// Execute deploys, examines and removes. The report is never nil. The error says why the run
// ended early or what is left behind.
func (p *Plan) Execute(ctx context.Context) (*Report, error) {
	m := &meter{}
	r := &Report{
		Form: form, Run: p.opt.Run, Date: p.opt.Now(), Region: p.site.Region(), StandIn: p.site.StandIn(),
		Planned: p.Cost.Dollars(), Versions: map[string]string{},
	}
	began := p.opt.Now()
	defer func() { p.app.Close() }() // a stand-in runs the program from its folder
	err := p.examine(ctx, m, r)
	if err != nil {
		r.Trouble = err.Error()
	}
	err = errors.Join(err, p.remove(ctx, m, r))
	r.Counted = m.total().plus(Cost{Hours: p.opt.Now().Sub(began).Hours()}).Dollars()
	return r, err
}

// examine builds, deploys, and examines all claims.
func (p *Plan) examine(ctx context.Context, m *meter, r *Report) error {
	limited, cancel := context.WithTimeoutCause(ctx, p.opt.Limit, fmt.Errorf("the run reached its limit of %s", p.opt.Limit))
	defer cancel()
	place, err := p.deploy(limited, m, r)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		for _, c := range p.claims {
			r.Claims = append(r.Claims, c.skip("nothing was deployed"))
		}
		return err
	}
	if place.StandIn == "" && place.API != "" {
		m.begin(warming)
		if err := place.warm(limited); err != nil {
			p.opt.Tell("the API's first answers: %v", err)
		}
	}
	for i, c := range p.claims {
		switch {
		case limited.Err() != nil:
			r.Claims = append(r.Claims, c.skip(context.Cause(limited).Error()))
			continue
		case place.StandIn != "" && c.OnStandIn != "" && !c.Differs:
			r.Claims = append(r.Claims, c.skip(c.OnStandIn))
			continue
		}
		p.opt.Tell("%d of %d: %s", i+1, len(p.claims), c.Name)
		m.begin(c.Cost)
		figure, err := c.Examine(limited, place)
		if limited.Err() != nil && err != nil {
			err = notSeen(context.Cause(limited))
		}
		result := c.judge(place, figure, err)
		if result.Status == Failed {
			p.opt.Tell("%s failed: %s", c.Name, result.Why)
		}
		r.Claims = append(r.Claims, result)
	}
	return context.Cause(limited)
}

func (p *Plan) deploy(ctx context.Context, m *meter, r *Report) (*Place, error) {
	p.opt.Tell("building the programs")
	app, err := p.opt.build(ctx, p.opt, p.site)
	p.app = app
	if err != nil {
		return nil, err
	}
	r.Versions, r.Commit = app.Versions, app.Commit
	p.opt.Tell("deploying %s", p.opt.Run)
	m.begin(setup)
	place, err := p.site.Deploy(ctx, p.opt.Run, p.Expires(), app, m)
	if err != nil {
		return nil, err
	}
	place.meter, place.Samekey = m, app.Samekey
	return place, nil
}

// remove removes the stack, also when the run was told to end.
func (p *Plan) remove(ctx context.Context, m *meter, r *Report) error {
	if p.opt.Keep && r.Trouble == "" {
		r.Left = fmt.Sprintf("the stack and bucket %s, by --keep; prove --clean %[1]s removes them", p.opt.Run)
		return nil
	}
	p.opt.Tell("removing %s", p.opt.Run)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
	defer cancel()
	m.begin(setup)
	if err := p.site.Remove(ctx); err != nil {
		r.Left = fmt.Sprintf("some of %s; prove --clean %[1]s tries again: %v", p.opt.Run, err)
		return fmt.Errorf("left behind: %s", r.Left)
	}
	return nil
}
