// Package initiative ranks optional actions: work that the requested result does not need (requirements N-1 to N-4).
//
// A candidate comes with the engine's decision about its operation. Ranking reads that decision and cannot change it:
// what is FORBIDDEN is never scored, what needs a grant is at most proposed, and what a mode filters out is not denied.
package initiative
