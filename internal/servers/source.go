package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Source describes where a server comes from: an endpoint in the environment, or a Java
// program with jars from the cache or Maven. Package dynamotest has a Source for DynamoDB
// Local, and package elasticmq has one for ElasticMQ. All fields except Shared, Ready and
// Otherwise are required.
type Source struct {
	// Kind names the kind of server in errors, such as "a queue".
	Kind string
	// Endpoint, AllowRemote and Cache are names of environment variables. The first holds
	// the endpoint of a server that runs already, the second permits an endpoint on another
	// machine, and the third holds the cache's folder.
	Endpoint, AllowRemote, Cache string
	// Shared names a variable that is set if the endpoint's server was started for this
	// run.
	Shared string
	// Unavailable is what Find's error matches if no server can be run.
	Unavailable error
	// Java is the oldest version that runs the server.
	Java   int
	Bundle Bundle
	// Start starts the server with the command java, from the install in dir.
	Start func(ctx context.Context, java, dir string) (*Found, error)
	// Ready, if set, is called before the jars are downloaded. If it returns an error, Find
	// doesn't use Java.
	Ready func() error
	// Otherwise is an optional function, for the case that Java provides no server. If the
	// function can't provide a server either, it returns nil and adds the reason to s. If it
	// returns an error, the search ends.
	Otherwise func(ctx context.Context, s *Search) (*Found, error)
}

// Found is a server that a [Source] has found.
type Found struct {
	// Endpoint is the base URL, without a slash at its end.
	Endpoint string
	// Stop ends the server that Find started. It is nil if Find started none.
	Stop func() error
}

// Find returns the endpoint that the environment names, without sending a request to it. If
// the environment names none, Find starts a server. ctx limits the search, not the server's
// life.
//
// The error matches Unavailable if no server can be run. It doesn't match Unavailable if a
// remote endpoint is not allowed, a jar differs from its checksum, or ctx is cancelled.
func (s Source) Find(ctx context.Context) (*Found, error) {
	if endpoint := s.endpoint(); endpoint != "" {
		if err := checkEndpoint(endpoint, s.AllowRemote); err != nil {
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
			// the source that was just tried may have failed only because ctx ended
			return nil, fmt.Errorf("looking for %s: %w; tried:%w", s.Kind, ctx.Err(), search)
		}
	}
	return nil, fmt.Errorf("%w; tried:%w", s.Unavailable, search)
}

// endpoint returns the endpoint that the environment names. If the server was started for
// this run, its port is new in each run. Then endpoint doesn't read the variable by
// os.Getenv: go test doesn't use its cached results if a variable has changed that a test
// read by os.Getenv.
func (s Source) endpoint() string {
	if s.Shared != "" && os.Getenv(s.Shared) != "" {
		endpoint, _ := syscall.Getenv(s.Endpoint)
		return endpoint
	}
	return os.Getenv(s.Endpoint)
}

// java runs the server on this machine's Java. The jars come from the cache, or from Maven
// if the cache has no jars.
func (s Source) java(ctx context.Context, search *Search) (*Found, error) {
	java, err := findJava(ctx, s.Java)
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

// Environ returns the environment without AWS's variables: a server for tests needs
// no credentials, so it gets none.
func Environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") {
			env = append(env, kv)
		}
	}
	return env
}
