package rides

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/lambda"
)

// show answers with a ride, to the user who booked it. It changes nothing and
// needs no key.
func (a *App) show(ctx context.Context, ev request) (response, error) {
	user, known := userOf(ev)
	if !known {
		return problem(http.StatusUnauthorized, "Send your token in the Authorization header."), nil
	}
	key, err := attributevalue.MarshalMap(rideKey{lambda.PathValue(ctx, "id")})
	if err != nil {
		return response{}, err
	}
	out, err := a.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &a.RidesTable, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return response{}, err
	}
	var ride Ride
	if err := attributevalue.UnmarshalMap(out.Item, &ride); err != nil {
		return response{}, err
	}
	if ride.User != user.Email { // also if there is no such ride
		return problem(http.StatusNotFound, "You have no such ride."), nil
	}
	return answer(http.StatusOK, ride), nil
}
