package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/testkit/itemjson"
)

// Peers are proof/bench/peers.json: Samekey beside what people use otherwise.
type Peers struct {
	Run Run `json:"run"`
	// Peers are the programs that were measured.
	Peers []Peer `json:"peers"`
	// Races are new requests and replays of everybody, taken in turns.
	Races  []Race  `json:"races"`
	Breaks []Break `json:"breaks"`
}

// Peer is a library with the SDK below it.
type Peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SDK     string `json:"sdk"`
	Runtime string `json:"runtime"`
}

// Race is a request of one library beside its floors in its own language.
type Race struct {
	Who string `json:"who"`
	Versus
	// ByGo are the same calls sent by the SDK for Go, the floor of a port to Go.
	// Samekey's own calls are by Go already.
	ByGo   Spread  `json:"same_calls_by_go_ns,omitzero"`
	OverGo float64 `json:"over_same_calls_by_go,omitzero"`
	// Bytes is the item with the answer; 0 for a replay.
	Bytes int `json:"bytes_at_rest,omitempty"`
}

// peer is a running program of proof/bench/peers.
type peer struct {
	Peer
	table string
	in    *json.Encoder
	out   *json.Decoder
	calls []wireCall
}

// reply is what a peer prints for each line.
type reply struct {
	Error                 string
	NS                    float64
	Version, SDK, Runtime string
	Calls                 []wireCall
	Answers               [][2]string
	Runs                  int
}

// ask has the peer do something, the i-th time.
func (p *peer) ask(do string, i int) (r reply, err error) {
	if err = p.in.Encode(map[string]any{"do": do, "i": i}); err == nil {
		err = p.out.Decode(&r)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %s %d: %w", p.Name, do, i, err)
	}
	return r, nil
}

// withPeers starts the peers, each with a table of its own, has fn use them, and ends them.
func withPeers(ctx context.Context, db *dynamotest.DB, root string, fn func(context.Context, []*peer) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	folder, installed := filepath.Join(root, "proof", "bench", "peers"), filepath.Join(root, ".venv")
	var all []*peer
	for _, prog := range []struct {
		name, needs string
		args        []string
	}{
		{"Powertools for AWS Lambda (Python)", "peers-python/bin/python", []string{"", filepath.Join(folder, "peer.py")}},
		{"Powertools for AWS Lambda (TypeScript)", "peers-node/node_modules", []string{"node", "--no-warnings", filepath.Join(folder, "peer.cjs")}},
	} {
		needs := filepath.Join(installed, filepath.FromSlash(prog.needs))
		if _, err := os.Stat(needs); err != nil {
			return fmt.Errorf("%s is not installed, make bench-peers installs it: %w", prog.name, err)
		}
		if prog.args[0] == "" {
			prog.args[0] = needs
		}
		p, end, err := startPeer(ctx, db, prog.name, prog.args, needs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		all = append(all, p)
	}
	return fn(ctx, all)
}

func startPeer(ctx context.Context, db *dynamotest.DB, name string, args []string, modules string) (*peer, func() error, error) {
	b, err := newBed(ctx, db) // its table of items has the peers' key, too
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "NODE_PATH=" + modules, "NO_PROXY=*", "PYTHONDONTWRITEBYTECODE=1",
		"AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_LAMBDA_FUNCTION_NAME=rides", "PEER_TABLE=" + b.app, "PEER_ANSWER=" + order(answerSize),
	}
	cmd.Env = append(cmd.Env, db.Env()...) //nolint:contextcheck // Env asks nobody
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end := func() error {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		return cmd.Wait()
	}
	p := &peer{Peer: Peer{Name: name}, table: b.app, in: json.NewEncoder(in), out: json.NewDecoder(out)}
	hello, err := p.ask("hello", 0)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	p.Version, p.SDK, p.Runtime = hello.Version, hello.SDK, hello.Runtime
	return p, end, nil
}

// measureRaces times a new request and a replay of everybody, each with its floors, in
// turns.
func measureRaces(ctx context.Context, db *dynamotest.DB, peers []*peer, n int) (all []Race, _ error) {
	client := db.Client(dynamo.Tune)
	b, err := newBed(ctx, db)
	if err != nil {
		return nil, err
	}
	fresh, again, err := localTrios(ctx, b, client, n)
	if err != nil {
		return nil, err
	}
	size, err := ourSize(ctx, db)
	if err != nil {
		return nil, err
	}
	sizes := []int{size}
	for _, p := range peers {
		seen, err := p.ask("record", 0)
		if err != nil {
			return nil, err
		}
		if len(seen.Calls) != 3 || seen.Calls[0].Op != "PutItem" || seen.Calls[1].Op != "UpdateItem" || seen.Calls[2].Op != "PutItem" {
			return nil, fmt.Errorf("%s makes other calls: %v", p.Name, seen.Calls)
		}
		p.calls = seen.Calls
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.table, Key: item{"id": p.calls[0].key()}})
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, itemsize.Of(out.Item))
	}
	for _, does := range []string{"new", "replay"} {
		ours := map[string]trio{"new": fresh, "replay": again}[does]
		run := []timed{byClock(ours.library), byClock(ours.same), byClock(ours.smallest)}
		for _, p := range peers {
			for _, part := range []string{"library", "same", "smallest"} {
				run = append(run, func(i int) (float64, error) {
					r, err := p.ask(part+" "+does, i)
					return r.NS, err
				})
			}
			run = append(run, byClock(p.byGo(ctx, client, does)))
		}
		if _, err := inTurns(min(n, 50), run...); err != nil { // connections, compilers
			return nil, err
		}
		later := make([]timed, len(run))
		for k := range run {
			later[k] = func(i int) (float64, error) { return run[k](i + warm) }
		}
		times, err := inTurns(n, later...)
		if err != nil {
			return nil, err
		}
		for k, name := range append([]string{"Samekey"}, names(peers)...) {
			t := times[:3]
			if times = times[3:]; k > 0 {
				t, times = append(t, times[0]), times[1:]
			}
			all = append(all, raceOf(name, does, n, t))
			if does == "new" {
				all[len(all)-1].Bytes = sizes[k]
			}
		}
	}
	return all, nil
}

// raceOf has the times of the library, of the same calls, of the smallest items and,
// of a peer, of the same calls by Go.
func raceOf(who, does string, n int, t []Spread) Race {
	over := func(floor Spread) float64 { return math.Round(100*t[0].P50/floor.P50) / 100 }
	r := Race{Who: who, Versus: Versus{Does: does, Samples: n, Library: t[0], Same: t[1], Smallest: t[2], OverSame: over(t[1]), OverSmallest: over(t[2])}}
	if len(t) > 3 {
		r.ByGo, r.OverGo = t[3], over(t[3])
	}
	return r
}

func names(peers []*peer) (all []string) {
	for _, p := range peers {
		all = append(all, p.Name)
	}
	return all
}

// ourSize is the record of the same request.
func ourSize(ctx context.Context, db *dynamotest.DB) (int, error) {
	it, err := finished(ctx, db, answerSize)
	return itemsize.Of(it), err
}

func byClock(do op) timed {
	return func(i int) (float64, error) {
		begun := time.Now()
		err := do(i)
		return float64(time.Since(begun).Nanoseconds()), err
	}
}

// byGo sends the peer's calls of a new request, or of a replay, by the SDK for Go.
func (p *peer) byGo(ctx context.Context, client *dynamodb.Client, does string) op {
	// The peers count keys from 0, and these calls are for the same table.
	key := func(i int) types.AttributeValue {
		name, hash, _ := strings.Cut(p.calls[0].key().(*types.AttributeValueMemberS).Value, "#")
		return str(fmt.Sprintf("%s#%0*d", name, len(hash), i+2*warm))
	}
	put := func(i int) error {
		in := *p.calls[0].put()
		in.Item = maps.Clone(in.Item)
		in.Item["id"] = key(i)
		_, err := client.PutItem(ctx, &in)
		return err
	}
	if does == "replay" {
		return func(i int) error { return mustRefuse(put(i)) }
	}
	return func(i int) error {
		if err := put(i); err != nil {
			return err
		}
		in := *p.calls[1].update()
		in.Key = item{"id": key(i)}
		_, err := client.UpdateItem(ctx, &in)
		return err
	}
}

// wireCall is a call as a peer's SDK was given it.
type wireCall struct {
	Op    string
	Input struct {
		TableName                           string
		Item, Key                           itemjson.Item
		ConditionExpression                 *string
		UpdateExpression                    *string
		ExpressionAttributeNames            map[string]string
		ExpressionAttributeValues           itemjson.Item
		ReturnValuesOnConditionCheckFailure types.ReturnValuesOnConditionCheckFailure
	}
}

func (c *wireCall) key() types.AttributeValue { return c.Input.Item["id"] }

func (c *wireCall) put() *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &c.Input.TableName, Item: c.Input.Item, ConditionExpression: c.Input.ConditionExpression,
		ExpressionAttributeNames: c.Input.ExpressionAttributeNames, ExpressionAttributeValues: c.Input.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: c.Input.ReturnValuesOnConditionCheckFailure,
	}
}

func (c *wireCall) update() *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &c.Input.TableName, Key: c.Input.Key, UpdateExpression: aws.String(aws.ToString(c.Input.UpdateExpression)),
		ConditionExpression: c.Input.ConditionExpression, ExpressionAttributeNames: c.Input.ExpressionAttributeNames,
		ExpressionAttributeValues: c.Input.ExpressionAttributeValues,
	}
}
