// Package verification says how far a claim is supported by what was really checked (requirements V-1 to V-4).
//
// A [Record] holds the parts; no part of it says what they amount to. The status is computed from them, every time.
// Verification looks at claims only: it removes or narrows what is said, and neither artifacts nor calls depend on it
// (requirements B-6, F-3).
package verification
