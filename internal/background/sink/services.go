package sink

type service struct {
	name string // in errors
	limits
	codes // the causes of error codes that say more than their HTTP status
}

// limits are a service's limits for a call.
type limits struct {
	entries int
	// bytes is the maximum size of all entries of a call together. An entry's size is
	// what the service counts. An entry over the limit is sent alone, and the service
	// decides whether to accept it. The service's own limit may differ from bytes,
	// because each queue or topic has its own MaximumMessageSize, and because AWS may
	// raise a limit.
	bytes int
}

var services = []service{queues, topics, buses, functions, machines}

// The limits are from the API reference in the SDK client of each service, in the
// version that this module requires.
var (
	// SendMessageBatch: 1 MiB for each message, and also for all messages of a call together (256
	// KiB until August 2025). The size counts a message's body and the names, types and values of
	// its attributes.
	queues = service{"sqs", limits{entries: 10, bytes: 1 << 20}, codes{
		ofJob: {"BatchRequestTooLong", "InvalidMessageContents"},
		ofSink: {
			"InvalidAddress", "NonExistentQueue", "OverLimit", "QueueDeletedRecently", "QueueDoesNotExist", "ResourceNotFoundException",
			"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired", "KmsThrottled",
		},
	}}
	// PublishBatch: the topic's MaximumMessageSize limits each message, and all messages of a call
	// together. The default is 256 KiB, the maximum 1 MiB. The size counts a message's body and
	// attributes.
	topics = service{"sns", limits{entries: 10, bytes: 256 << 10}, codes{
		ofJob: {"BatchRequestTooLong", "InvalidMessageContents"},
		ofSink: {
			"EndpointDisabled", "NotFound", "PlatformApplicationDisabled", "Throttled",
			"KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound", "KMSOptInRequired", "KMSThrottling",
		},
	}}
	// PutEvents: all entries together must be less than "1MB" (256 KB until January
	// 2026). Here "1MB" is read as 1,000,000 bytes. The size counts an entry's source,
	// detail-type and detail.
	buses = service{"eventbridge", limits{entries: 10, bytes: 1_000_000 - 1}, codes{
		ofJob:  {"MalformedDetail"},
		ofSink: {"InvalidAccountIdException", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException", "OperationDisabledException"},
	}}
	// An asynchronous Invoke takes one event of at most 1 MB (256 KB until October
	// 2025). No limit is set here, because Lambda decides whether the event is too
	// large.
	functions = service{"lambda", limits{}, codes{
		ofJob: {
			// an execution with the same name has another payload
			"DurableExecutionAlreadyStartedException",
			"InvalidRequestContentException", "RequestTooLargeException", "SerializedRequestEntityTooLargeException",
		},
		ofSink: {
			"ModeNotSupportedException", "NoPublishedVersionException", "ResourceConflictException", "ResourceNotReadyException", "SnapStartException",
			"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
		},
	}}
	// A call of StartExecution takes one input of at most 262,144 bytes.
	// ExecutionLimitExceeded means that the account has too many open executions.
	machines = service{"states", limits{bytes: 256 << 10}, codes{
		ofJob: {"InvalidExecutionInput", "InvalidName"},
		ofSink: {
			"ExecutionLimitExceeded", "InvalidArn", "StateMachineDeleting", "StateMachineDoesNotExist",
			"KmsAccessDeniedException", "KmsInvalidStateException", "KmsThrottlingException",
		},
	}}
)

// anyService has the codes that all services have.
var anyService = service{codes: codes{
	ofSink: {
		// the sender's identity or rights are at fault
		"AccessDenied", "AccessDeniedException", "AuthorizationError", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
		"IncompleteSignatureException", "InvalidClientTokenId", "InvalidSecurity", "InvalidSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SignatureDoesNotMatch",
		"UnrecognizedClientException",
		// the connection or the service is at fault
		"InternalError", "InternalException", "InternalFailure", "InvalidAction", "MalformedHttpRequestException", "RequestAbortedException",
		"RequestTimeout", "RequestTimeoutException", "ServiceException", "ServiceUnavailable", "UnknownOperationException",
	},
}}
