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
	// Endpoint, AllowRemote and Cache name environment variables. The variable of
	// Endpoint holds the endpoint of a server that runs already. That of AllowRemote
	// permits an endpoint on another machine. That of Cache holds the folder of the
	// cache.
	Endpoint, AllowRemote, Cache string
	// Shared names an environment variable that is set if the server at the endpoint
	// was started only for this test run; "" for none.
	Shared string
	// Unavailable is the error that Find's error matches if no server can be run.
	Unavailable error
	// Java is the oldest Java version that runs the server.
	Java   int
	Bundle Bundle
	// Start starts the server with the command java, from the install in dir.
	Start func(ctx context.Context, java, dir string) (*Found, error)
	// Ready, if set, is called before the jars are downloaded. If Ready returns an
	// error, Find doesn't use Java.
	Ready func() error
	// Otherwise, if set, provides a server if Java doesn't. If Otherwise can't either,
	// it adds the reason to s and returns nil without an error. An error of Otherwise
	// ends the search.
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
			// not Unavailable: the try may have failed only because ctx ended
			return nil, fmt.Errorf("looking for %s: %w; tried:%w", s.Kind, ctx.Err(), search)
		}
	}
	return nil, fmt.Errorf("%w; tried:%w", s.Unavailable, search)
}

// Source.endpoint returns the endpoint that the environment names. go test runs a
// cached test again if a variable has changed that the test read by os.Getenv. A server
// that was started for this run has another port in each run, so endpoint then reads
// the variable by syscall.Getenv, which go test doesn't notice.
func (s Source) endpoint() string {
	if s.Shared != "" && os.Getenv(s.Shared) != "" {
		endpoint, _ := syscall.Getenv(s.Endpoint)
		return endpoint
	}
	return os.Getenv(s.Endpoint)
}

// Source.java runs the server on this machine's Java. The jars come from the cache, or
// from Maven if the cache has no jars.
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

// Environ returns the environment without the variables AWS_*, because a server for
// tests needs no credentials.
func Environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") {
			env = append(env, kv)
		}
	}
	return env
}
