package doctortest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/smithy-go/encoding/cbor"
)

// Do returns AWS's answer to a request. The SDK's clients use w as their HTTP client.
func (w *World) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	switch target, path := req.Header.Get("X-Amz-Target"), req.URL.Path; {
	case req.URL.Host == codeHost:
		return w.code(req)
	case strings.HasPrefix(target, "AWSEvents."):
		return w.bus(req, body)
	case strings.HasPrefix(target, "AWSStepFunctions."):
		return w.machine(req, body)
	case target != "":
		_, op, _ := strings.Cut(target, ".")
		return w.rpc(req, strings.Contains(target, "DynamoDB"), op, body)
	case strings.HasPrefix(path, "/service/GraniteServiceVersion20100801/"):
		return w.alarms(req, body)
	case strings.Contains(path, "/functions") || strings.Contains(path, "/event-source-mappings"):
		return w.lambda(req)
	case strings.HasPrefix(path, "/schedules"):
		return w.schedules(req)
	case strings.HasPrefix(path, "/v2/apis/"), strings.HasPrefix(path, "/restapis/"):
		return w.gateway(req)
	case strings.HasPrefix(string(body), "Action=") && strings.Contains(string(body), "&Version=2010-05-08"):
		return w.iam(req, string(body))
	case strings.HasPrefix(string(body), "Action="):
		return w.formation(req, string(body))
	}
	return nil, fmt.Errorf("doctortest: %s %s is not known", req.Method, req.URL)
}

func (w *World) answer(req *http.Request, status int, contentType string, body []byte, header map[string]string) *http.Response {
	h := http.Header{"Content-Type": {contentType}, "Date": {w.Now.UTC().Format(http.TimeFormat)}}
	for name, value := range header {
		h.Set(name, value)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

const json10 = "application/x-amz-json-1.0"

func (w *World) json(req *http.Request, contentType string, v any) (*http.Response, error) {
	raw, err := json.Marshal(v)
	return w.answer(req, http.StatusOK, contentType, raw, nil), err
}

// World.fail answers with an error in the form of AWS's JSON protocols.
func (w *World) fail(req *http.Request, status int, code string) (*http.Response, error) {
	raw, err := json.Marshal(Object{"__type": "com.amazonaws#" + code, "message": "not for tests"})
	return w.answer(req, status, json10, raw, map[string]string{"X-Amzn-Errortype": code}), err
}

func (w *World) rpc(req *http.Request, table bool, op string, body []byte) (*http.Response, error) {
	service := "SQS."
	if table {
		service = "DynamoDB."
	}
	if code := w.Refused[service+op]; code != "" {
		return w.fail(req, http.StatusBadRequest, code)
	}
	var in Object
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if name, named := in["TableName"]; table && named && name != w.Table["TableName"] && name != w.Table["TableArn"] {
		return w.fail(req, http.StatusBadRequest, "ResourceNotFoundException")
	}
	switch op {
	case "DescribeTable":
		return w.json(req, json10, Object{"Table": w.Table})
	case "DescribeTimeToLive":
		return w.json(req, json10, Object{"TimeToLiveDescription": w.TTL})
	case "DescribeContinuousBackups":
		return w.json(req, json10, Object{"ContinuousBackupsDescription": w.Backups})
	case "Scan":
		return w.scan(req, in)
	case "Query":
		return w.json(req, json10, Object{"Items": []any{}, "Count": 0, "ScannedCount": 0})
	case "GetItem":
		return w.json(req, json10, Object{})
	case "PutItem", "UpdateItem":
		if in["ConditionExpression"] != "attribute_exists(pk) AND attribute_not_exists(pk)" {
			return nil, fmt.Errorf("doctortest: %s could change the table: %s", op, body)
		}
		return w.fail(req, http.StatusBadRequest, "ConditionalCheckFailedException")
	case "GetQueueUrl":
		name, _ := in["QueueName"].(string)
		if w.Queues[name] == nil {
			return w.fail(req, http.StatusBadRequest, "QueueDoesNotExist")
		}
		return w.json(req, json10, Object{"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/" + name})
	case "GetQueueAttributes":
		at, _ := in["QueueUrl"].(string)
		q := w.Queues[at[strings.LastIndexByte(at, '/')+1:]]
		if q == nil {
			return w.fail(req, http.StatusBadRequest, "QueueDoesNotExist")
		}
		return w.json(req, json10, Object{"Attributes": q})
	}
	return nil, fmt.Errorf("doctortest: %s%s is not known", service, op)
}

// World.schedules serves ListSchedules, in pages of one schedule, and GetSchedule.
func (w *World) schedules(req *http.Request) (*http.Response, error) {
	const plain = "application/json"
	_, name, one := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	op := "ListSchedules"
	if one {
		op = "GetSchedule"
	}
	if code := w.Refused["Scheduler."+op]; code != "" {
		return w.fail(req, http.StatusForbidden, code)
	}
	if !one {
		from := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("NextToken"), &from)
		out := Object{"Schedules": []any{}}
		if from < len(w.Schedules) {
			s := w.Schedules[from]
			target, _ := s["Target"].(Object)
			out["Schedules"] = []any{Object{"Name": s["Name"], "GroupName": s["GroupName"], "State": s["State"], "Target": Object{"Arn": target["Arn"]}}}
		}
		if from+1 < len(w.Schedules) {
			out["NextToken"] = strconv.Itoa(from + 1)
		}
		return w.json(req, plain, out)
	}
	for _, s := range w.Schedules {
		if s["Name"] == name && s["GroupName"] == req.URL.Query().Get("groupName") {
			return w.json(req, plain, s)
		}
	}
	return w.fail(req, http.StatusNotFound, "ResourceNotFoundException")
}

// World.bus serves DescribeEventBus.
func (w *World) bus(req *http.Request, body []byte) (*http.Response, error) {
	if code := w.Refused["EventBridge.DescribeEventBus"]; code != "" {
		return w.fail(req, http.StatusBadRequest, code)
	}
	var in struct{ Name string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	arn, ok := w.Buses[in.Name]
	if !ok {
		return w.fail(req, http.StatusBadRequest, "ResourceNotFoundException")
	}
	return w.json(req, json10, Object{"Name": arn[strings.LastIndexByte(arn, '/')+1:], "Arn": arn})
}

// World.machine serves DescribeStateMachine.
func (w *World) machine(req *http.Request, body []byte) (*http.Response, error) {
	if code := w.Refused["StepFunctions.DescribeStateMachine"]; code != "" {
		return w.fail(req, http.StatusBadRequest, code)
	}
	var in struct {
		Machine string `json:"stateMachineArn"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	m, ok := w.Machines[in.Machine]
	if !ok {
		return w.fail(req, http.StatusBadRequest, "StateMachineDoesNotExist")
	}
	return w.json(req, json10, m)
}

// World.iam serves GetRole and SimulatePrincipalPolicy.
func (w *World) iam(req *http.Request, body string) (*http.Response, error) {
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, err
	}
	op, code := form.Get("Action"), w.Refused["IAM."+form.Get("Action")]
	arn := form.Get("PolicySourceArn")
	role := w.Roles[cmp.Or(form.Get("RoleName"), arn[strings.LastIndexByte(arn, '/')+1:])]
	if role == nil && code == "" {
		code = "NoSuchEntity"
	}
	const xml = "text/xml"
	if code != "" {
		return w.answer(req, http.StatusForbidden, xml, []byte("<ErrorResponse><Error><Type>Sender</Type><Code>"+code+"</Code><Message>not for tests</Message></Error><RequestId>1</RequestId></ErrorResponse>"), nil), nil
	}
	var result string
	switch op {
	case "GetRole":
		result = "<Role><Arn>" + role.ARN + "</Arn><AssumeRolePolicyDocument>" + url.QueryEscape(role.Trust) + "</AssumeRolePolicyDocument></Role>"
	case "SimulatePrincipalPolicy":
		decision := "implicitDeny"
		if slices.Contains(role.Allowed, form.Get("ResourceArns.member.1")) {
			decision = "allowed"
		}
		result = "<EvaluationResults><member><EvalActionName>" + form.Get("ActionNames.member.1") + "</EvalActionName><EvalDecision>" + decision + "</EvalDecision></member></EvaluationResults>"
	default:
		return nil, fmt.Errorf("doctortest: IAM.%s is not known", op)
	}
	return w.answer(req, http.StatusOK, xml, []byte("<"+op+"Response><"+op+"Result>"+result+"</"+op+"Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></"+op+"Response>"), nil), nil
}

// World.scan serves Scan. Segment 0 has all items, and other segments are empty.
func (w *World) scan(req *http.Request, in Object) (*http.Response, error) {
	if segment, ok := in["Segment"].(float64); ok && segment > 0 {
		return w.json(req, json10, Object{"Items": []any{}, "Count": 0, "ScannedCount": 0})
	}
	items := w.Items
	if in["FilterExpression"] == "st <> :done" {
		items = slices.DeleteFunc(slices.Clone(items), func(it Object) bool {
			st, ok := it["st"].(Object)
			return !ok || st["S"] == "done"
		})
	}
	if n, ok := in["Limit"].(float64); ok && int(n) < len(items) {
		items = items[:int(n)]
	}
	out := Object{"Items": items, "Count": len(items), "ScannedCount": len(w.Items)}
	page := 1
	if key, ok := in["ExclusiveStartKey"].(Object); ok {
		if pk, ok := key["pk"].(Object); ok {
			_, _ = fmt.Sscan(fmt.Sprint(pk["S"]), &page)
			page++
		}
	}
	if page < w.Pages {
		out["LastEvaluatedKey"] = Object{"pk": Object{"S": strconv.Itoa(page)}}
	}
	return w.json(req, json10, out)
}

func (w *World) lambda(req *http.Request) (*http.Response, error) {
	const plain = "application/json"
	query := req.URL.Query()
	part := strings.Split(strings.Trim(req.URL.Path, "/"), "/") // for example DATE, functions, NAME, configuration
	op, name := "ListFunctions", ""
	switch {
	case part[1] == "event-source-mappings":
		op = "ListEventSourceMappings"
	case len(part) == 4 && part[3] == "event-invoke-config":
		name, op = part[2], "GetFunctionEventInvokeConfig"
	case len(part) == 4 && part[3] == "recursion-config":
		name, op = part[2], "GetFunctionRecursionConfig"
	case len(part) == 3 && part[2] != "":
		name, op = part[2], "GetFunction"
	case len(part) == 4:
		name = part[2]
		op = map[string]string{"configuration": "GetFunctionConfiguration", "concurrency": "GetFunctionConcurrency", "policy": "GetPolicy", "aliases": "ListAliases"}[part[3]]
	}
	if q := query.Get("Qualifier"); q != "" {
		name += ":" + q
	}
	whole := w.whole(name)
	if code := w.Refused["Lambda."+op]; code != "" {
		return w.fail(req, http.StatusForbidden, code)
	}
	switch op {
	case "ListFunctions": // in pages of two functions
		rest := w.Functions
		if query.Get("Marker") != "" {
			rest = rest[2:]
		}
		out := Object{"Functions": rest}
		if len(rest) > 2 {
			out = Object{"Functions": rest[:2], "NextMarker": "2"}
		}
		return w.json(req, plain, out)
	case "ListEventSourceMappings":
		all := []Object{}
		for _, m := range w.Mappings {
			fn, _ := m["FunctionArn"].(string)
			if want := query.Get("EventSourceArn"); want != "" && want == m["EventSourceArn"] || query.Has("FunctionName") && fn == w.whole(query.Get("FunctionName")) {
				all = append(all, m)
			}
		}
		return w.json(req, plain, Object{"EventSourceMappings": all})
	}
	for _, f := range w.Functions {
		arn, _ := f["FunctionArn"].(string)
		name, _ := f["FunctionName"].(string)
		alias := strings.TrimPrefix(whole, arn+":")
		if whole != arn {
			if !slices.Contains(w.Aliases[name], alias) {
				continue
			}
			if v, ok := w.Versions[name+":"+alias]; ok {
				f = v
			}
			name += ":" + alias
		}
		switch {
		case op == "GetFunction":
			return w.json(req, plain, Object{"Configuration": f, "Code": Object{"RepositoryType": "S3", "Location": "https://" + codeHost + "/" + name}})
		case op == "GetFunctionConfiguration":
			return w.json(req, plain, f)
		case op == "ListAliases":
			all := []Object{}
			for _, alias := range w.Aliases[name] {
				all = append(all, Object{"Name": alias, "AliasArn": arn + ":" + alias, "FunctionVersion": "1"})
			}
			return w.json(req, plain, Object{"Aliases": all})
		case op == "GetFunctionConcurrency":
			out := Object{}
			if n, ok := w.Concurrency[name]; ok {
				out["ReservedConcurrentExecutions"] = n
			}
			return w.json(req, plain, out)
		case op == "GetFunctionEventInvokeConfig" && w.EventInvokes[name] != nil:
			return w.json(req, plain, w.EventInvokes[name])
		case op == "GetFunctionRecursionConfig":
			return w.json(req, plain, Object{"RecursiveLoop": cmp.Or(w.RecursiveLoop, "Terminate")})
		case op == "GetPolicy" && w.Policies[name] != "":
			return w.json(req, plain, Object{"Policy": w.Policies[name], "RevisionId": "1"})
		}
	}
	return w.fail(req, http.StatusNotFound, "ResourceNotFoundException")
}

// World.whole returns the ARN for a function's name, which may include an alias.
func (w *World) whole(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return "arn:aws:lambda:us-east-1:123456789012:function:" + name
}

func (w *World) gateway(req *http.Request) (*http.Response, error) {
	part, op := strings.Split(strings.Trim(req.URL.Path, "/"), "/"), "GetResources"
	switch {
	case part[0] == "v2":
		op = "GetIntegrations"
	case len(part) == 2:
		op = "GetRestApi"
	}
	if code := cmp.Or(w.Refused["APIGateway."], w.Refused["APIGateway."+op]); code != "" {
		return w.fail(req, http.StatusForbidden, code)
	}
	if len(part) < 2 {
		return w.fail(req, http.StatusNotFound, "NotFoundException")
	}
	if all, ok := w.Integrations[part[min(2, len(part)-1)]]; ok && part[0] == "v2" {
		return w.json(req, "application/json", Object{"items": all})
	}
	if all, ok := w.Resources[part[1]]; ok && part[0] == "restapis" && req.URL.Query().Get("embed") == "methods" {
		return w.json(req, "application/json", Object{"item": all})
	}
	if _, ok := w.Resources[part[1]]; ok && part[0] == "restapis" && len(part) == 2 {
		return w.json(req, "application/json", Object{"id": part[1], "binaryMediaTypes": w.BinaryMediaTypes[part[1]]})
	}
	return w.fail(req, http.StatusNotFound, "NotFoundException")
}

// World.alarms serves CloudWatch, whose protocol is binary. A page of DescribeAlarms
// has five alarms.
func (w *World) alarms(req *http.Request, body []byte) (*http.Response, error) {
	proto := map[string]string{"Smithy-Protocol": "rpc-v2-cbor"}
	const binary = "application/cbor"
	op := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	if code := w.Refused["CloudWatch."+op]; code != "" {
		return w.answer(req, http.StatusForbidden, binary, cbor.Encode(binaryOf(Object{"__type": "com.amazonaws#" + code, "message": "not for tests"})), proto), nil
	}
	if op == "ListMetrics" {
		return w.answer(req, http.StatusOK, binary, cbor.Encode(binaryOf(Object{"Metrics": list(w.Metrics)})), proto), nil
	}
	in, err := cbor.Decode(body)
	if err != nil {
		return nil, err
	}
	from := 0
	if m, ok := in.(cbor.Map); ok {
		if token, ok := m["NextToken"].(cbor.String); ok {
			_, _ = fmt.Sscan(string(token), &from)
		}
	}
	out := Object{"MetricAlarms": list(w.Alarms[from:min(from+5, len(w.Alarms))])}
	if from+5 < len(w.Alarms) {
		out["NextToken"] = strconv.Itoa(from + 5)
	}
	return w.answer(req, http.StatusOK, binary, cbor.Encode(binaryOf(out)), proto), nil
}

func list(all []Object) []any {
	out := make([]any, len(all))
	for i, o := range all {
		out[i] = o
	}
	return out
}

func binaryOf(v any) cbor.Value {
	switch v := v.(type) {
	case Object:
		m := make(cbor.Map, len(v))
		for name, value := range v {
			m[name] = binaryOf(value)
		}
		return m
	case []any:
		l := make(cbor.List, len(v))
		for i, value := range v {
			l[i] = binaryOf(value)
		}
		return l
	case bool:
		return cbor.Bool(v)
	default:
		return cbor.String(fmt.Sprint(v))
	}
}

// World.formation serves CloudFormation: requests are forms, answers are XML.
func (w *World) formation(req *http.Request, body string) (*http.Response, error) {
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, err
	}
	const xml = "text/xml"
	all, ok := w.Stacks[form.Get("StackName")]
	if !ok || form.Get("Action") != "ListStackResources" {
		return w.answer(req, http.StatusBadRequest, xml, []byte(`<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error>`+
			`<Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id `+form.Get("StackName")+` does not exist</Message></Error><RequestId>1</RequestId></ErrorResponse>`), nil), nil
	}
	var b strings.Builder
	b.WriteString(`<ListStackResourcesResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><ListStackResourcesResult><StackResourceSummaries>`)
	for _, r := range all {
		b.WriteString("<member>")
		for name, value := range r {
			fmt.Fprintf(&b, "<%s>%v</%s>", name, value, name)
		}
		b.WriteString("</member>")
	}
	b.WriteString(`</StackResourceSummaries></ListStackResourcesResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></ListStackResourcesResponse>`)
	return w.answer(req, http.StatusOK, xml, []byte(b.String()), nil), nil
}
