package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// askFunctions finds the functions on the table: those named, else all whose variable
// IDEM_TABLE names the table; the readers of its stream; and those that the worker
// completes with.
func (f *Facts) askFunctions(ctx context.Context, c Clients, names []string) {
	if len(names) > 0 {
		for _, name := range names {
			f.askFunction(ctx, c.Lambda, name, nil)
		}
	} else {
		f.listFunctions(ctx, c.Lambda)
	}
	f.askReaders(ctx, c.Lambda)
	if w := f.worker(); w != nil {
		for _, name := range list(w.Env["SAMEKEY_FUNCTIONS"]) {
			f.askFunction(ctx, c.Lambda, name, &f.Gone)
		}
	}
	if len(f.Functions) == 0 {
		f.miss(Functions, fmt.Sprintf("no function was found: none has the variable IDEM_TABLE=%s; name the stack or the functions", f.Options.Table))
	}
	for _, s := range []Source{Mappings, Concurrency, Recursion, Policies} {
		if why, ok := f.unread[Functions]; ok {
			f.miss(s, why)
		}
	}
	for _, fn := range f.Functions {
		f.askSources(ctx, c.Lambda, fn)
	}
	if w := f.worker(); w != nil {
		out, err := c.Lambda.GetFunctionRecursionConfig(ctx, &lambda.GetFunctionRecursionConfigInput{FunctionName: &w.Name})
		if err != nil {
			f.miss(Recursion, fmt.Sprintf("%s: %s", w.Name, reason(err)))
			return
		}
		w.Loops = out.RecursiveLoop == lambdatypes.RecursiveLoopAllow
	}
}

// list is a setting with commas or blanks between its entries.
func list(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}

// plain is a function's name, of its ARN too, without version and alias.
func plain(function string) string {
	if _, after, ok := strings.Cut(function, ":function:"); ok {
		function = after
	}
	name, _, _ := strings.Cut(function, ":")
	return name
}

func (f *Facts) function(name string) *Function {
	i := slices.IndexFunc(f.Functions, func(fn *Function) bool { return fn.Name == plain(name) })
	if i < 0 {
		return nil
	}
	return f.Functions[i]
}

func (f *Facts) listFunctions(ctx context.Context, api Lambda) {
	pages := lambda.NewListFunctionsPaginator(api, &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Functions, reason(err))
			return
		}
		for _, c := range page.Functions {
			if c.Environment != nil && f.sameTable(c.Environment.Variables["IDEM_TABLE"]) {
				f.add(c.FunctionName, c.FunctionArn, c.Timeout, c.Environment, c.LoggingConfig)
			}
		}
	}
}

// sameTable reports whether a name or ARN is that of the table.
func (f *Facts) sameTable(name string) bool {
	short := func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
	return name != "" && short(name) == short(f.Options.Table)
}

// askFunction adds a function that is not known yet; one that doesn't exist is added to
// gone, if that is there.
func (f *Facts) askFunction(ctx context.Context, api Lambda, name string, gone *[]string) {
	if f.function(name) != nil {
		return
	}
	c, err := api.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(plain(name))})
	switch {
	case notFound(err) && gone != nil:
		*gone = append(*gone, name)
	case err != nil:
		f.miss(Functions, fmt.Sprintf("%s: %s", name, reason(err)))
	default:
		f.add(c.FunctionName, c.FunctionArn, c.Timeout, c.Environment, c.LoggingConfig)
	}
}

func (f *Facts) add(name, arn *string, timeout *int32, env *lambdatypes.EnvironmentResponse, logs *lambdatypes.LoggingConfig) {
	fn := &Function{Name: aws.ToString(name), ARN: aws.ToString(arn), Timeout: 3 * time.Second, Env: map[string]string{}} // Lambda's default
	if timeout != nil {
		fn.Timeout = time.Duration(*timeout) * time.Second
	}
	if env != nil {
		if env.Error != nil {
			f.miss(Functions, fmt.Sprintf("%s: its variables: %s", fn.Name, aws.ToString(env.Error.Message)))
		}
		fn.Env = env.Variables
	}
	if logs != nil && logs.LogFormat == lambdatypes.LogFormatJson {
		fn.LogLevel = logs.ApplicationLogLevel
	}
	f.Functions = append(f.Functions, fn)
}

// askReaders adds the functions that read the table's stream.
func (f *Facts) askReaders(ctx context.Context, api Lambda) {
	stream := f.streamARN()
	if stream == "" {
		return
	}
	pages := lambda.NewListEventSourceMappingsPaginator(api, &lambda.ListEventSourceMappingsInput{EventSourceArn: &stream})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Mappings, reason(err))
			return
		}
		for _, m := range page.EventSourceMappings {
			f.askFunction(ctx, api, aws.ToString(m.FunctionArn), nil)
		}
	}
}

// askSources asks for a function's event sources and its share of the concurrency.
func (f *Facts) askSources(ctx context.Context, api Lambda, fn *Function) {
	pages := lambda.NewListEventSourceMappingsPaginator(api, &lambda.ListEventSourceMappingsInput{FunctionName: &fn.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Mappings, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
			break
		}
		fn.Mappings = append(fn.Mappings, page.EventSourceMappings...)
	}
	c, err := api.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &fn.Name})
	if err != nil {
		f.miss(Concurrency, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
		return
	}
	fn.Reserved = c.ReservedConcurrentExecutions
}
