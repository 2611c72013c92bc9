package certs

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// AnnotationRotate on the Secret asks for a rotation. Its only value is RotateNow. It goes when the rotation begins, so
	// that one which is written meanwhile asks for another.
	AnnotationRotate = "stepbeyond.dev/rotate"
	// RotateNow is the value of AnnotationRotate.
	RotateNow = "now"
)

// Each step changes the Secret from one phase to the next. It is written with the resourceVersion that was read, so that of
// two leaders one fails, and all of a step happens or nothing of it.

// Distribute begins a rotation: a steady installation gets its next generation.
func Distribute(secret *corev1.Secret, now time.Time, lifetime time.Duration) (*corev1.Secret, error) {
	if _, err := in(secret, PhaseSteady); err != nil {
		return nil, err
	}
	generation, err := NewGeneration(now, lifetime)
	if err != nil {
		return nil, err
	}
	secret = secret.DeepCopy()
	next.write(secret.Data, generation)
	delete(secret.Annotations, AnnotationRotate)
	return secret, nil
}

// Switch makes the next generation the current one. The key of the one before it is gone then: nothing signs with it.
func Switch(secret *corev1.Secret) (*corev1.Secret, error) {
	installation, err := in(secret, PhaseDistributing)
	if err != nil {
		return nil, err
	}
	secret = secret.DeepCopy()
	previous.write(secret.Data, installation.Current)
	current.write(secret.Data, installation.Next)
	next.clear(secret.Data)
	secret.Data[fieldRotations] = []byte(strconv.Itoa(installation.Rotations + 1))
	return secret, nil
}

// Retire ends a rotation: the previous generation is neither trusted nor served any more.
func Retire(secret *corev1.Secret) (*corev1.Secret, error) {
	if _, err := in(secret, PhaseOverlapping); err != nil {
		return nil, err
	}
	secret = secret.DeepCopy()
	previous.clear(secret.Data)
	return secret, nil
}

func in(secret *corev1.Secret, phase Phase) (*Installation, error) {
	installation, err := parseInstallation(secret)
	if err != nil {
		return nil, err
	}
	if got := installation.Phase(); got != phase {
		return nil, fmt.Errorf("%w: the rotation is in phase %s, want %s", ErrInvalid, got, phase)
	}
	return installation, nil
}
