package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
)

// Default timeouts of API Gateway's integrations.
const (
	httpAPITimeout = 30 * time.Second
	restAPITimeout = 29 * time.Second
)

// askGateways asks for the integrations of APIs with the functions. A function's policy
// says which APIs may invoke the function.
func (f *Facts) askGateways(ctx context.Context, c Clients) {
	for _, fn := range f.Functions {
		all, err := apis(fn.Policy)
		if err != nil {
			f.miss(Policies, fmt.Sprintf("%s: can't read the function's policy: %v", fn.Name, err))
		}
		for _, api := range all {
			f.askGateway(ctx, c, fn, api)
		}
	}
}

// apis returns the APIs that may invoke the function with this policy.
func apis(policy string) (ids []string, _ error) {
	var p struct {
		Statement []struct {
			Condition map[string]map[string]any // each value is a string or a list of strings; an emulator may give true
		}
	}
	if policy == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return nil, err
	}
	for _, s := range p.Statement {
		for _, operator := range s.Condition {
			for _, value := range operator {
				for arn := range strings.FieldsSeq(strings.Trim(fmt.Sprint(value), "[]")) {
					if part := strings.SplitN(arn, ":", 6); len(part) == 6 && part[2] == "execute-api" {
						id, _, _ := strings.Cut(part[5], "/")
						ids = append(ids, id)
					}
				}
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func (f *Facts) askGateway(ctx context.Context, c Clients, fn *Function, api string) {
	mine := func(uri *string) bool {
		s := aws.ToString(uri)
		arn, _, _ := strings.Cut(s[max(0, strings.LastIndex(s, "arn:")):], "/")
		return fn.is(arn)
	}
	textOnly := false
	add := func(ms *int32, most time.Duration) {
		if ms != nil && *ms > 0 {
			most = time.Duration(*ms) * time.Millisecond
		}
		fn.Gateways = append(fn.Gateways, Gateway{api, most, textOnly})
	}
	in := &apigatewayv2.GetIntegrationsInput{ApiId: &api}
	for {
		out, err := c.HTTPAPIs.GetIntegrations(ctx, in)
		if notFound(err) {
			break // no HTTP API has this id, so the API is a REST API
		}
		if err != nil {
			f.miss(Gateways, fmt.Sprintf("%s: %s", api, reason(err)))
			return
		}
		for _, i := range out.Items {
			if mine(i.IntegrationUri) {
				add(i.TimeoutInMillis, httpAPITimeout)
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return
		}
	}
	rest, err := c.RESTAPIs.GetRestApi(ctx, &apigateway.GetRestApiInput{RestApiId: &api})
	if err != nil {
		f.miss(Gateways, fmt.Sprintf("%s: %s", api, reason(err)))
		return
	}
	textOnly = len(rest.BinaryMediaTypes) == 0
	pages := apigateway.NewGetResourcesPaginator(c.RESTAPIs, &apigateway.GetResourcesInput{RestApiId: &api, Embed: []string{"methods"}, Limit: aws.Int32(500)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Gateways, fmt.Sprintf("%s: %s", api, reason(err)))
			return
		}
		for _, r := range page.Items {
			for _, m := range r.ResourceMethods {
				if m.MethodIntegration != nil && mine(m.MethodIntegration.Uri) {
					ms := m.MethodIntegration.TimeoutInMillis
					add(&ms, restAPITimeout)
				}
			}
		}
	}
}
