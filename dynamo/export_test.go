package dynamo

// TimeToLive is how CreateTable turns the table's TTL on.
var TimeToLive = timeToLive
