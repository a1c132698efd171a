package rides

import (
	"crypto/rand"
	"time"
)

// Price is the price of every ride in cents, unless App.Price is set.
const Price = 20_00

// Ride is an item of the table of rides. ChargeID is empty until the ride is paid.
type Ride struct {
	ID        string    `json:"id"                  dynamodbav:"id"`
	User      string    `json:"user"                dynamodbav:"user"`
	OriginLat float64   `json:"origin_lat"          dynamodbav:"origin_lat"`
	OriginLon float64   `json:"origin_lon"          dynamodbav:"origin_lon"`
	TargetLat float64   `json:"target_lat"          dynamodbav:"target_lat"`
	TargetLon float64   `json:"target_lon"          dynamodbav:"target_lon"`
	ChargeID  string    `json:"charge_id,omitempty" dynamodbav:"charge_id,omitempty"`
	CreatedAt time.Time `json:"created_at"          dynamodbav:"created_at"`
}

// rideKey is the key of a ride.
type rideKey struct {
	ID string `dynamodbav:"id"`
}

// auditRecord is an item of the table of audit records: the user, the action, the data and
// the origin.
type auditRecord struct {
	ID           string             `dynamodbav:"id"`
	Action       string             `dynamodbav:"action"`
	Data         map[string]float64 `dynamodbav:"data"`
	User         string             `dynamodbav:"user"`
	OriginIP     string             `dynamodbav:"origin_ip"`
	ResourceType string             `dynamodbav:"resource_type"`
	ResourceID   string             `dynamodbav:"resource_id"`
	CreatedAt    time.Time          `dynamodbav:"created_at"`
}

// newRide returns a ride that is not paid yet.
func newRide(user User, in input) Ride {
	return Ride{
		ID: "ride_" + rand.Text(), User: user.Email, CreatedAt: now(),
		OriginLat: *in.OriginLat, OriginLon: *in.OriginLon, TargetLat: *in.TargetLat, TargetLon: *in.TargetLon,
	}
}

// created returns the audit record of a new ride, with the client's input as data.
func (r Ride) created(originIP string) auditRecord {
	return auditRecord{
		ID: "audit_" + rand.Text(), Action: "ride.created", User: r.User, OriginIP: originIP,
		Data: map[string]float64{
			"origin_lat": r.OriginLat, "origin_lon": r.OriginLon, "target_lat": r.TargetLat, "target_lon": r.TargetLon,
		},
		ResourceType: "ride", ResourceID: r.ID, CreatedAt: r.CreatedAt,
	}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
