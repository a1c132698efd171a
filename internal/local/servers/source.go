package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Source says where a server comes from: the endpoint that the environment names,
// or a Java program with jars of the cache or of Maven. Its owner, dynamotest or
// elasticmq, adds what only it knows. All fields are required but the last two.
type Source struct {
	// Kind is what is looked for, as errors call it: "a queue".
	Kind string
	// Endpoint, AllowRemote and Cache name environment variables: of an endpoint to
	// use as it is, of the permission for one on another machine, and of the cache's
	// folder.
	Endpoint, AllowRemote, Cache string
	// Unavailable is matched by the error of a search that found nothing to run.
	Unavailable error
	// Java is the oldest version that runs it.
	Java   int
	Bundle Bundle
	// Start runs the server on that java, from the install in dir.
	Start func(ctx context.Context, java, dir string) (*Found, error)
	// Ready, if set, may refuse Java before anything is downloaded for it.
	Ready func() error
	// Otherwise, if set, is tried after Java. It returns nil and adds to the search
	// why it is no way; its error ends the search.
	Otherwise func(ctx context.Context, s *Search) (*Found, error)
}

// Found is a server that a [Source] has found.
type Found struct {
	// Endpoint is the base URL, without a slash at its end.
	Endpoint string
	// Stop ends what was started; nil if nothing was.
	Stop func() error
}

// Find returns the endpoint of the environment, without a request to it, or else
// starts a server. ctx bounds the search, not the server's life.
//
// The error matches Unavailable if there is nothing to run. A remote endpoint that
// is not allowed, jars that differ from their checksums and a cancelled context
// don't match.
func (s Source) Find(ctx context.Context) (*Found, error) {
	if endpoint := os.Getenv(s.Endpoint); endpoint != "" {
		if err := CheckEndpoint(endpoint, s.AllowRemote); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Endpoint, err)
		}
		return &Found{Endpoint: strings.TrimRight(endpoint, "/")}, nil
	}
	var search Search
	search.Miss(s.Endpoint, errors.New("not set"))
	ways := []func(context.Context, *Search) (*Found, error){s.java}
	if s.Otherwise != nil {
		ways = append(ways, s.Otherwise)
	}
	for _, try := range ways {
		found, err := try(ctx, &search)
		if found != nil || err != nil {
			return found, err
		}
		if ctx.Err() != nil {
			// What was missed now was missed for lack of time.
			return nil, fmt.Errorf("looking for %s: %w; tried:%w", s.Kind, ctx.Err(), search)
		}
	}
	return nil, fmt.Errorf("%w; tried:%w", s.Unavailable, search)
}

// java runs the server on this machine's Java, from jars in the cache or, where
// there are none, from jars that Maven gets.
func (s Source) java(ctx context.Context, search *Search) (*Found, error) {
	java, err := FindJava(ctx, s.Java)
	if err != nil {
		search.Miss(fmt.Sprintf("Java %d or newer", s.Java), err)
		return nil, nil
	}
	root, err := CacheRoot(s.Cache)
	if err != nil {
		return nil, err
	}
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			search.Miss("Java", err)
			return nil, nil
		}
	}
	dir, from := s.Bundle.Dir(root), "Java with cached jars"
	if err := s.Bundle.Cached(dir); err != nil {
		search.Miss(from, err)
		from = "Java with Maven"
		switch err := s.Bundle.Install(ctx, root); {
		case errors.Is(err, ErrChecksum):
			return nil, err
		case err != nil:
			search.Miss(from, err)
			return nil, nil
		}
	}
	found, err := s.Start(ctx, java, dir)
	if err != nil {
		search.Miss(from, err)
		return nil, nil
	}
	return found, nil
}

// Environ is the environment without AWS's variables: a server of a test needs no
// credentials, so it gets none.
func Environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") {
			env = append(env, kv)
		}
	}
	return env
}
