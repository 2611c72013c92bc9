package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// clients write at the same time, each over its own connection.
const clients = 16

// operation is what all writes of one block do.
type operation string

const (
	create operation = "create"
	update operation = "update"
	remove operation = "delete"
)

// operations in the order in which a round does them: each works on what the one before it left.
var operations = []operation{create, update, remove}

// writers are the clients of one caller.
type writers struct {
	configMaps []typed.ConfigMapInterface
	// objects as the API server answered them last, by index; an agent that reads, changes and writes sends the same.
	objects []*corev1.ConfigMap
}

func newWriters(cfg *rest.Config, namespace string) (*writers, error) {
	w := &writers{}
	for range clients {
		own := rest.CopyConfig(cfg)
		own.QPS = -1 // the API server is asked as fast as it answers
		own.WarningHandlerWithContext = rest.NoWarnings{}
		own.Dial = (&net.Dialer{}).DialContext // clients with the same dialer share connections
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		w.configMaps = append(w.configMaps, client.CoreV1().ConfigMaps(namespace))
	}
	return w, nil
}

// write does n writes of one kind and returns when the last is answered. The first failure ends it.
func (w *writers) write(ctx context.Context, do operation, n int) error {
	if do == create {
		w.objects = make([]*corev1.ConfigMap, n)
	}
	var next atomic.Int64
	failures := make([]error, clients)
	var all sync.WaitGroup
	for client, configMaps := range w.configMaps {
		all.Go(func() {
			for failures[client] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				failures[client] = w.one(ctx, configMaps, do, i)
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	return nil
}

func (w *writers) one(ctx context.Context, configMaps typed.ConfigMapInterface, do operation, i int) (err error) {
	switch do {
	case create:
		w.objects[i], err = configMaps.Create(ctx, configMap(i), metav1.CreateOptions{})
	case update:
		w.objects[i].Data["note"] = strings.Repeat("changed ", 8)
		w.objects[i], err = configMaps.Update(ctx, w.objects[i], metav1.UpdateOptions{})
	case remove:
		err = configMaps.Delete(ctx, w.objects[i].Name, metav1.DeleteOptions{})
	}
	return err
}

func configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("note-%d", i)},
		Data:       map[string]string{"note": strings.Repeat("written ", 8)},
	}
}
