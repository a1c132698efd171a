// Command orders is a chi service behind API Gateway.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	o := &orders{dynamodb.NewFromConfig(cfg), os.Getenv("ORDERS_TABLE")}
	lambda.Start(httpadapter.NewV2(o.routes()).ProxyWithContext)
}
