package notify

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// maxAlarm bounds the text of an alarm.
const maxAlarm = 480

// Recorder records events, and also tells people of those whose reason is in Alarms. These notices live in memory alone:
// one that is not delivered before a restart is lost, and the event and the metrics stay.
type Recorder struct {
	events.EventRecorder
	Notifier *Notifier
	// Alarms says for reasons of Kubernetes events what people are told.
	Alarms map[string]managerconfig.Event
	Scheme *runtime.Scheme
	Now    func() time.Time
}

// Eventf records the event and queues the notice.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
	event, ok := r.Alarms[reason]
	if !ok {
		return
	}
	a := &alarm{Alarm{About: r.about(regarding), Text: screen.Line(fmt.Sprintf(note, args...), maxAlarm), Time: r.Now().UTC()}}
	for _, name := range r.Notifier.Endpoints(event) {
		r.Notifier.Tell(name, event, a)
	}
}

// about names the object by its kind, which objects from a cache do not say themselves.
func (r *Recorder) about(object runtime.Object) string {
	kind, name := "object", ""
	if gvk, err := apiutil.GVKForObject(object, r.Scheme); err == nil {
		kind = gvk.Kind
	}
	if accessor, err := meta.Accessor(object); err == nil {
		name = accessor.GetName()
	}
	return screen.Line(kind+"/"+name, maxName)
}

// alarm is a Subject that nothing remembers.
type alarm struct{ Alarm }

func (a *alarm) ID() string    { return a.About + " " + a.Text + " " + a.Time.Format(time.RFC3339) }
func (a *alarm) Group() string { return "" }

func (a *alarm) Look(context.Context, string) (Item, bool, error) {
	return Item{Alarm: &a.Alarm}, true, nil
}

func (a *alarm) Told(context.Context, string, time.Time) error { return nil }
