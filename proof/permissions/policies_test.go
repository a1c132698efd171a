package permissions_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/deploy"
)

// statement allows actions. With patterns, each key that a call names has to match one.
type statement struct {
	actions  []string
	patterns []string
}

// role may do what its statements allow, and notes what it did.
type role struct {
	name       string
	statements []statement

	mu     sync.Mutex
	used   map[string]bool // actions
	denied map[string]bool // actions, with the keys of statements that have patterns
}

func newRole(name string, statements ...statement) *role {
	return &role{name: name, statements: statements, used: make(map[string]bool), denied: make(map[string]bool)}
}

// may reports whether an action on items is allowed, each by one statement.
func (r *role) may(action string, pks ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	allowed := slices.ContainsFunc(r.statements, func(s statement) bool {
		return slices.Contains(s.actions, action) && (len(s.patterns) == 0 || !slices.ContainsFunc(pks, func(pk string) bool { return !like(pk, s.patterns) }))
	})
	if allowed {
		r.used[action] = true
	} else {
		r.denied[action] = true
	}
	return allowed
}

// like is IAM's StringLike with patterns that have a * at their end.
func like(s string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		begin, any := strings.CutSuffix(p, "*")
		return s == p || any && strings.HasPrefix(s, begin)
	})
}

// refusal is AWS's answer to what a role may not do.
func (r *role) refusal(action string) error {
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: r.name + " is not authorized to perform " + action}
}

// held has a client of DynamoDB hold its calls to the role.
func (r *role) held(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("held", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			for action, pks := range actionsOf(in.Parameters) {
				if !r.may(action, pks...) {
					return middleware.InitializeOutput{}, middleware.Metadata{}, r.refusal(action)
				}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
}

// actionsOf are the permissions that a call takes, with the keys of their items: a
// transaction takes those of its parts.
func actionsOf(in any) map[string][]string {
	pk := func(it map[string]types.AttributeValue) string {
		s, _ := it["pk"].(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	all := make(map[string][]string)
	add := func(action string, keys ...string) {
		all["dynamodb:"+action] = append(all["dynamodb:"+action], keys...)
	}
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		add("GetItem", pk(in.Key))
	case *dynamodb.PutItemInput:
		add("PutItem", pk(in.Item))
	case *dynamodb.UpdateItemInput:
		add("UpdateItem", pk(in.Key))
	case *dynamodb.BatchGetItemInput:
		for _, of := range in.RequestItems {
			for _, key := range of.Keys {
				add("BatchGetItem", pk(key))
			}
		}
	case *dynamodb.BatchWriteItemInput:
		for _, of := range in.RequestItems {
			for _, w := range of {
				if w.PutRequest != nil {
					add("BatchWriteItem", pk(w.PutRequest.Item))
				} else {
					add("BatchWriteItem", pk(w.DeleteRequest.Key))
				}
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, part := range in.TransactItems {
			switch {
			case part.Put != nil:
				add("PutItem", pk(part.Put.Item))
			case part.Update != nil:
				add("UpdateItem", pk(part.Update.Key))
			case part.Delete != nil:
				add("DeleteItem", pk(part.Delete.Key))
			case part.ConditionCheck != nil:
				add("ConditionCheckItem", pk(part.ConditionCheck.Key))
			}
		}
	case *dynamodb.QueryInput:
		add("Query")
	case *dynamodb.ScanInput:
		add("Scan")
	default:
		add(strings.TrimSuffix(fmt.Sprintf("%T", in)[len("*dynamodb."):], "Input"))
	}
	return all
}

// unused are the permissions that the role has for no call. Those of the event source and
// of the logs are Lambda's.
func (r *role) unused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := make(map[string]bool)
	for _, s := range r.statements {
		for _, a := range s.actions {
			left[a] = !r.used[a]
		}
	}
	lambdas := regexp.MustCompile(`^(logs|xray|s3|kms):|Stream|GetRecords|GetShardIterator|sqs:DeleteMessage|sqs:ReceiveMessage`)
	var all []string
	for a, is := range left {
		if is && !lambdas.MatchString(a) {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return all
}

// refused are the actions that were refused.
func (r *role) refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.denied))
}

// deployed are the statements of policies of samekey.yaml, for a function of one namespace.
func deployed(t *testing.T, namespace string, policies ...string) (all []statement) {
	t.Helper()
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(deploy.Nested()), &template); err != nil {
		t.Fatal(err)
	}
	for _, name := range policies {
		node, ok := template.Resources[name]
		if !ok {
			t.Fatalf("there is no policy %s", name)
		}
		found := statements(&node, namespace)
		if len(found) == 0 {
			t.Fatalf("%s has no statement", name)
		}
		all = append(all, found...)
	}
	return all
}

// statements finds them in a policy, also in its conditions.
func statements(n *yaml.Node, namespace string) (all []statement) {
	if n.Kind == yaml.MappingNode {
		var s statement
		for i := 0; i < len(n.Content); i += 2 {
			switch n.Content[i].Value {
			case "Action":
				s.actions = texts(n.Content[i+1])
			case "Condition":
				s.patterns = leadingKeys(n.Content[i+1], namespace)
			}
		}
		if s.actions != nil {
			return []statement{s}
		}
	}
	for _, c := range n.Content {
		all = append(all, statements(c, namespace)...)
	}
	return all
}

// texts are a text, or those of a list.
func texts(n *yaml.Node) (all []string) {
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	for _, c := range n.Content {
		all = append(all, c.Value)
	}
	return all
}

// leadingKeys are the patterns of a condition.
func leadingKeys(n *yaml.Node, namespace string) []string {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == "dynamodb:LeadingKeys" {
				if n.Content[i+1].Tag == "!Ref" {
					return []string{"v1#" + namespace + "#*"}
				}
				return texts(n.Content[i+1])
			}
		}
	}
	for _, c := range n.Content {
		if found := leadingKeys(c, namespace); found != nil {
			return found
		}
	}
	return nil
}

func page(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/operate/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var quoted = regexp.MustCompile("`([A-Za-z0-9]+:)?([A-Z][A-Za-z]+)`")

// named are the actions that a text has in quotes; those without a service are of service.
func named(text, service string) (s statement) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			service = m[1]
		}
		s.actions = append(s.actions, service+m[2])
	}
	return s
}
