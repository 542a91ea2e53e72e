// Package childconfig makes the configuration of sf2loki out of the one file that
// both programs share, and the environment that fits it.
//
// It guarantees: no coordinator but noop, and no key or variable that only this
// program knows, reaches the child by file or by SF2LOKI_ variable; health address
// and shutdown grace are the given ones; every other value reads as it did,
// ${NAME} included. The document that was made is parsed again and compared with
// what was meant; if the YAML library did not reproduce it there is an error, and
// no document. Errors repeat nothing of the document.
//
// It does not judge sf2loki's sections, does not expand ${NAME} (a reference to a
// variable that [Environ] removes is an error of the child), and may change white
// space and the form of comments.
package childconfig
