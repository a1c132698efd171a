package dynamo

// TimeToLive is the call that turns on the table's TTL.
var TimeToLive = timeToLive
