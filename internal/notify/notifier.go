// Package notify tells people what waits for them. It never decides anything: a question is asked, answered and used just
// the same when nobody can be told.
package notify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// Subject is something that people are told of. Two subjects of one ID are the same.
type Subject interface {
	// ID is the same for the same thing, also after a restart.
	ID() string
	// Group makes one message of what belongs together.
	Group() string
	// Look reads what there is to tell an endpoint now. ok is false once that is nothing: the question is answered, or
	// the endpoint was told.
	Look(ctx context.Context, endpoint string) (item Item, ok bool, err error)
	// Told remembers that the endpoint took it. After an error it is called again, and the message is not sent again.
	Told(ctx context.Context, endpoint string, at time.Time) error
}

// Notifier delivers to the endpoints of the configuration. Only the leader runs it.
type Notifier struct {
	endpoints []*endpoint
	metrics   *Metrics
}

// endpoint is one of them with what waits for it.
type endpoint struct {
	*managerconfig.Notification
	queue   *queue
	most    int
	send    func(context.Context, *message) error
	metrics *Metrics
	now     func() time.Time
}

// New makes a notifier. Without endpoints it tells nobody.
func New(config *managerconfig.ManagerConfig, secrets Secrets, metrics *Metrics, now func() time.Time) *Notifier {
	n := &Notifier{metrics: metrics}
	for i := range config.Notifications {
		one := &config.Notifications[i]
		n.endpoints = append(n.endpoints, &endpoint{
			Notification: one, queue: newQueue(time.Duration(one.MergeWindow())*time.Second, now), most: formats[one.Type].most,
			send: newSender(one, secrets, now).send, metrics: metrics, now: now,
		})
	}
	return n
}

// Endpoints are the names of those that are told of an event.
func (n *Notifier) Endpoints(event managerconfig.Event) []string {
	var names []string
	for _, e := range n.endpoints {
		if slices.Contains(e.Events, event) {
			names = append(names, e.Name)
		}
	}
	return names
}

// Has tells whether there is an endpoint of this name, whatever it is told of.
func (n *Notifier) Has(name string) bool {
	return slices.ContainsFunc(n.endpoints, func(e *endpoint) bool { return e.Name == name })
}

// Tell queues a subject for an endpoint and returns at once. It is false when there was no room: then nobody is told unless
// it is called again.
func (n *Notifier) Tell(name string, event managerconfig.Event, subject Subject) bool {
	for _, e := range n.endpoints {
		if e.Name == name {
			return e.add(event, subject)
		}
	}
	return true
}

func (e *endpoint) add(event managerconfig.Event, subject Subject) bool {
	taken := e.queue.add(event, subject)
	if !taken {
		e.metrics.Dropped.WithLabelValues(e.Name, string(event)).Inc()
	}
	e.metrics.Queued.WithLabelValues(e.Name).Set(float64(e.queue.waits()))
	return taken
}

// Start delivers until the context ends.
func (n *Notifier) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, e := range n.endpoints {
		all.Go(func() { e.run(ctx) })
	}
	all.Wait()
	return nil
}

// NeedLeaderElection has one replica tell.
func (n *Notifier) NeedLeaderElection() bool { return true }

// run delivers one message at a time.
func (e *endpoint) run(ctx context.Context) {
	for ctx.Err() == nil {
		g, wait, ok := e.queue.next()
		if ok && wait == 0 {
			e.deliver(ctx, &g)
			e.metrics.Queued.WithLabelValues(e.Name).Set(float64(e.queue.waits()))
			continue
		}
		if !ok {
			wait = time.Hour
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-e.queue.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// deliver tells as much of a group as one message holds.
func (e *endpoint) deliver(ctx context.Context, g *group) {
	d := &delivery{endpoint: e, group: g}
	d.drop()
	ready := d.look(ctx)
	if len(ready) > 0 {
		d.send(ctx, ready)
	}
	d.mark(ctx)
	if d.err != nil {
		e.metrics.Failed.WithLabelValues(e.Name, string(g.event)).Inc()
		log.FromContext(ctx).WithName("notify").Info("Not delivered; it is tried again", "endpoint", e.Name, "event", g.event,
			"notices", len(g.waiting), "failures", g.failures+1, "why", d.err.Error())
	}
	e.queue.done(g.groupKey, d.finished, d.sent, d.err != nil, d.wait)
}

// delivery is one look at one group.
type delivery struct {
	*endpoint
	*group
	finished []*waiting
	sent     bool
	err      error
	wait     time.Duration
}

type ready struct {
	*waiting
	item Item
}

// drop gives up what has waited too long.
func (d *delivery) drop() {
	now := d.now()
	d.waiting = slices.DeleteFunc(d.waiting, func(w *waiting) bool {
		old := now.Sub(w.since) >= keepFor
		if old {
			d.finished = append(d.finished, w)
			d.metrics.Dropped.WithLabelValues(d.Name, string(d.event)).Inc()
		}
		return old
	})
	slices.SortStableFunc(d.waiting, oldestFirst)
}

// look reads what is told now. What cannot be read is looked at again; what is answered meanwhile is forgotten.
func (d *delivery) look(ctx context.Context) []ready {
	var all []ready
	for _, w := range d.waiting {
		if !w.sent.IsZero() {
			continue
		}
		item, ok, err := w.subject.Look(ctx, d.Name)
		switch {
		case err != nil:
			d.err = errors.Join(d.err, err)
		case !ok:
			d.finished = append(d.finished, w)
		default:
			all = append(all, ready{w, item})
		}
	}
	return all
}

// send sends one message. What is under way when the process ends gets its end.
func (d *delivery) send(ctx context.Context, all []ready) {
	told := all[:min(len(all), d.most)]
	var ids []string
	var items []Item
	for _, r := range told {
		ids, items = append(ids, r.subject.ID()), append(items, r.item)
	}
	m := newMessage(d.event, d.group.group, d.now(), ids, items, len(all)-len(told))
	err := d.endpoint.send(context.WithoutCancel(ctx), m)
	var refused *refusal
	if errors.As(err, &refused) {
		d.wait = refused.wait
	}
	if err != nil {
		d.err = errors.Join(d.err, err)
		return
	}
	d.sent = true
	d.metrics.Sent.WithLabelValues(d.Name, string(d.event)).Inc()
	for _, r := range told {
		r.sent = d.now()
	}
}

// markWithin bounds remembering one notice.
const markWithin = 5 * time.Second

// mark has the subjects remember that they were told.
func (d *delivery) mark(ctx context.Context) {
	for _, w := range d.waiting {
		if w.sent.IsZero() {
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markWithin)
		err := w.subject.Told(ctx, d.Name, w.sent)
		cancel()
		if err != nil {
			d.err = errors.Join(d.err, err)
			continue
		}
		d.finished = append(d.finished, w)
	}
}
