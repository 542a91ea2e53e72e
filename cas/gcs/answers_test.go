package gcs_test

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/answers"
)

// client is this package's client, for the table of answers.
var client = answers.Client{
	Service: answers.GCS,
	Open: func(t *testing.T, url string) coordinator.LeaseStore {
		return coordinator.FromRegister(open(t, gcs.Config{Bucket: answers.Bucket, EndpointURL: url}).Register(answers.Key))
	},
	Form:    checkForm,
	Secrets: []string{"hunter2"},
}

func TestEachAnswerHasItsClassAndCostsOneRequest(t *testing.T) {
	isolate(t)
	answers.Run(t, client)
}

func TestSilenceEndsWithTheContext(t *testing.T) {
	isolate(t)
	answers.RunSilent(t, client)
}
