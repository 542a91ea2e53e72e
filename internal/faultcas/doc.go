// Package faultcas puts faults in front of a [cas.Register] for tests: requests
// that never arrive, answers that are lost after the write was applied, delays,
// hangs, and answers of any class.
//
// It decides nothing about what is right: the plan is a function of the test,
// called once per request in the order in which requests are made. It waits
// with timers of package time, so that it runs on fake time in
// testing/synctest.
package faultcas
