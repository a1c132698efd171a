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

// askFunctions finds the functions that use the table: the named functions, the readers
// of the table's stream, and the functions in the worker's SAMEKEY_FUNCTIONS. If no
// function is named, askFunctions finds every function whose IDEM_TABLE is the table.
func (f *Facts) askFunctions(ctx context.Context, c Clients, names []string) {
	if len(names) > 0 {
		for _, name := range names {
			f.askDeployed(ctx, c.Lambda, name)
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
		f.miss(Functions, fmt.Sprintf("no function has the variable IDEM_TABLE=%s; give --stack or --function", f.Options.Table))
	}
	for _, s := range []Source{Code, Mappings, Concurrency, Recursion, EventInvokes, Policies} {
		if why, ok := f.unread[Functions]; ok {
			f.miss(s, why)
		}
	}
	for _, fn := range f.Functions {
		c, err := c.Lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &fn.ARN})
		if err != nil {
			f.miss(Concurrency, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
			continue
		}
		fn.Reserved = c.ReservedConcurrentExecutions
	}
	for _, fn := range f.Functions {
		f.askEvents(ctx, c.Lambda, fn)
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

// list splits a setting at commas and blanks.
func list(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}

// plain takes a function's name or ARN, and returns the name without version and alias.
func plain(function string) string {
	_, name, _ := parts(function)
	return name
}

// parts splits a function's name or ARN into the ARN's prefix, the name, and the alias
// or version. A name has the prefix "", and $LATEST has the alias "".
func parts(function string) (place, name, alias string) {
	place, after, ok := strings.Cut(function, ":function:")
	if !ok {
		place, after = "", function
	}
	name, alias, _ = strings.Cut(after, ":")
	return place, name, strings.TrimPrefix(alias, "$LATEST")
}

// Function.is reports whether the argument is the function's name or ARN, with the
// function's alias. Region and account are compared only if the argument contains them.
func (fn *Function) is(named string) bool {
	place, name, alias := parts(named)
	own, _, _ := parts(fn.ARN)
	return name == fn.Name && alias == fn.Alias && strings.HasSuffix(own, place)
}

// Function.qualified returns the function's ARN, with the alias if there is one.
func (fn *Function) qualified() string {
	return strings.TrimSuffix(fn.ARN+":"+fn.Alias, ":")
}

func (f *Facts) function(name string) *Function {
	i := slices.IndexFunc(f.Functions, func(fn *Function) bool { return fn.is(name) })
	if i < 0 {
		return nil
	}
	return f.Functions[i]
}

// listFunctions adds the functions whose IDEM_TABLE has the table's name. It adds a
// function even if its table is in another Region or account, so that the check
// env-table can report the function.
func (f *Facts) listFunctions(ctx context.Context, api Lambda) {
	pages := lambda.NewListFunctionsPaginator(api, &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Functions, reason(err))
			return
		}
		for _, c := range page.Functions {
			if c.Environment != nil && c.Environment.Variables["IDEM_TABLE"] != "" {
				f.askDeployed(ctx, api, aws.ToString(c.FunctionArn))
			}
		}
	}
	f.Functions = slices.DeleteFunc(f.Functions, func(fn *Function) bool { return short(fn.Env["IDEM_TABLE"]) != short(f.Options.Table) })
}

// short takes a table's name or ARN, and returns the name.
func short(table string) string { return table[strings.LastIndexByte(table, '/')+1:] }

// sameTable reports whether name, the value of the function's IDEM_TABLE, stands for the
// examined table. A name that isn't an ARN stands for a table in the function's Region and
// account.
func (f *Facts) sameTable(fn *Function, name string) bool {
	if !strings.HasPrefix(name, "arn:") {
		if part := strings.SplitN(fn.ARN, ":", 6); len(part) == 6 {
			name = strings.Join([]string{"arn", part[1], "dynamodb", part[3], part[4], "table/" + name}, ":")
		}
	}
	return name == aws.ToString(f.Table.TableArn)
}

// askDeployed asks for a function's $LATEST and aliases. It adds those that are in use,
// which means that they have an event source mapping or a resource policy. If none is
// in use, askDeployed adds all aliases, or $LATEST if there is no alias. If the
// argument function names an alias, askDeployed adds only this alias, even if the alias
// isn't in use.
func (f *Facts) askDeployed(ctx context.Context, api Lambda, function string) {
	if _, _, alias := parts(function); alias != "" {
		f.askFunction(ctx, api, function, nil)
		return
	}
	before := len(f.Functions)
	f.askFunction(ctx, api, function, nil)
	pages := lambda.NewListAliasesPaginator(api, &lambda.ListAliasesInput{FunctionName: &function})
	for pages.HasMorePages() && len(f.Functions) > before {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Functions, fmt.Sprintf("%s: the function's aliases can't be read: %s", function, reason(err)))
			return
		}
		for _, a := range page.Aliases {
			f.askFunction(ctx, api, function+":"+aws.ToString(a.Name), nil)
		}
	}
	all := f.Functions[before:]
	idle := func(fn *Function) bool { return len(fn.Mappings) == 0 && fn.Policy == "" }
	if used := slices.DeleteFunc(slices.Clone(all), idle); len(used) > 0 {
		f.Functions = append(f.Functions[:before], used...)
	} else if len(all) > 1 {
		f.Functions = append(f.Functions[:before], all[1:]...)
	}
}

// askFunction adds a function, unless it is known already. If the function doesn't exist
// and gone isn't nil, askFunction appends the name to the list *gone.
func (f *Facts) askFunction(ctx context.Context, api Lambda, name string, gone *[]string) {
	if f.function(name) != nil {
		return
	}
	c, err := api.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	switch {
	case notFound(err) && gone != nil:
		*gone = append(*gone, name)
		return
	case err != nil:
		f.miss(Functions, fmt.Sprintf("%s: %s", name, reason(err)))
		return
	}
	_, _, alias := parts(name)
	arn := strings.SplitAfterN(aws.ToString(c.FunctionArn), ":", 8) // AWS puts the alias after the name
	fn := &Function{
		Name: aws.ToString(c.FunctionName), ARN: strings.TrimSuffix(strings.Join(arn[:min(7, len(arn))], ""), ":"), Alias: alias,
		Timeout: 3 * time.Second, Env: map[string]string{}, // Lambda's default
	}
	if c.Timeout != nil {
		fn.Timeout = time.Duration(*c.Timeout) * time.Second
	}
	if env := c.Environment; env != nil {
		if env.Error != nil {
			f.miss(Functions, fmt.Sprintf("%s: the function's variables can't be read: %s", fn.Name, aws.ToString(env.Error.Message)))
		}
		fn.Env = env.Variables
	}
	if logs := c.LoggingConfig; logs != nil && logs.LogFormat == lambdatypes.LogFormatJson {
		fn.LogLevel = logs.ApplicationLogLevel
	}
	f.Functions = append(f.Functions, fn)
	f.askCallers(ctx, api, fn)
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

// askCallers asks for a function's event sources and its resource policy.
func (f *Facts) askCallers(ctx context.Context, api Lambda, fn *Function) {
	name := aws.String(fn.qualified())
	pages := lambda.NewListEventSourceMappingsPaginator(api, &lambda.ListEventSourceMappingsInput{FunctionName: name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Mappings, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
			break
		}
		fn.Mappings = append(fn.Mappings, page.EventSourceMappings...)
	}
	out, err := api.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: name})
	switch {
	case notFound(err): // the function has no resource policy
	case err != nil:
		f.miss(Policies, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
	default:
		fn.Policy = aws.ToString(out.Policy)
	}
}

// askEvents asks for a function's configuration for asynchronous invocations. A
// function without this configuration gets Lambda's defaults if SNS, S3 or EventBridge
// may invoke the function.
func (f *Facts) askEvents(ctx context.Context, api Lambda, fn *Function) {
	in := &lambda.GetFunctionEventInvokeConfigInput{FunctionName: &fn.ARN}
	if fn.Alias != "" {
		in.Qualifier = &fn.Alias
	}
	out, err := api.GetFunctionEventInvokeConfig(ctx, in)
	sends := func(service string) bool { return strings.Contains(fn.Policy, `"`+service+`.amazonaws.com"`) }
	switch {
	case err != nil && !notFound(err):
		f.miss(EventInvokes, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
		return
	case err != nil && !slices.ContainsFunc([]string{"sns", "s3", "events"}, sends):
		return
	}
	fn.Events = &Events{Retries: 2, Age: 6 * time.Hour} // Lambda's defaults
	if err != nil {
		return
	}
	if out.MaximumRetryAttempts != nil {
		fn.Events.Retries = *out.MaximumRetryAttempts
	}
	if out.MaximumEventAgeInSeconds != nil {
		fn.Events.Age = time.Duration(*out.MaximumEventAgeInSeconds) * time.Second
	}
}
