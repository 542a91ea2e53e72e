// Package guardtest holds the programs that the tests of guard and supervisor
// run as real processes, and the means to watch them.
//
// A test binary becomes any of these programs through [Main]: no shell and no
// other executable is needed. The programs are witnesses: they append the
// instant of every act to a file, so that a test asserts when the last act
// happened instead of asking whether a process is still there. Every program
// ends by itself after a minute, whatever becomes of the test.
package guardtest
