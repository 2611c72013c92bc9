// Package corpora measures the engine against public data that nobody in this project wrote and that stays outside the
// repository. Each [Row] counts the entries of one set on which one promise is broken.
//
// What is given to the engine is the name, the description and the arguments of a tool, a manifest, or a text: never an
// annotation, a hint, a label or an ID of the data. Those only choose which promise an entry is held to.
package corpora
