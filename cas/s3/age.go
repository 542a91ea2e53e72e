package s3

import (
	"context"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/wire"
)

type ageKey struct{}

// takeAge reads the age off each answer before the SDK reads it.
func takeAge(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("TakeAge",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, meta, err := next.HandleDeserialize(ctx, in)
			if resp, ok := out.RawResponse.(*smithyhttp.Response); ok {
				meta.Set(ageKey{}, cas.AgeOf(wire.TakeTimes(resp.Header)))
			}
			return out, meta, err
		}), middleware.After) // answers pass the last one first
}

// ageOf is the age that an answer told, or 0.
func ageOf(meta middleware.Metadata) time.Duration {
	age, _ := meta.Get(ageKey{}).(time.Duration)
	return age
}
