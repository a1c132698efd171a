package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-chi/chi/v5"
)

type item = map[string]types.AttributeValue

// order is an order, as clients see it.
type order struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Payments string `json:"payments"`
}

// orders are in a table.
type orders struct {
	client *dynamodb.Client
	table  string
}

func (o *orders) routes() http.Handler {
	r := chi.NewRouter()
	r.Get("/orders", o.list)
	r.Post("/orders", o.create)
	r.Get("/orders/{id}", o.show)
	r.Put("/orders/{id}", o.rename)
	r.Delete("/orders/{id}", o.remove)
	r.Post("/orders/{id}/payments", o.pay)
	return r
}

func (o *orders) list(w http.ResponseWriter, r *http.Request) {
	out, err := o.client.Scan(r.Context(), &dynamodb.ScanInput{TableName: &o.table})
	if failed(w, err) {
		return
	}
	all := []order{}
	for _, it := range out.Items {
		all = append(all, orderOf(it))
	}
	answer(w, http.StatusOK, all)
}

func (o *orders) create(w http.ResponseWriter, r *http.Request) {
	var in order
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" {
		http.Error(w, "which name?", http.StatusUnprocessableEntity)
		return
	}
	it := item{"id": text(rand.Text()), "name": text(in.Name), "payments": &types.AttributeValueMemberN{Value: "0"}}
	_, err := o.client.PutItem(r.Context(), &dynamodb.PutItemInput{TableName: &o.table, Item: it})
	if failed(w, err) {
		return
	}
	answer(w, http.StatusCreated, orderOf(it))
}

func (o *orders) show(w http.ResponseWriter, r *http.Request) {
	out, err := o.client.GetItem(r.Context(), &dynamodb.GetItemInput{TableName: &o.table, Key: key(r), ConsistentRead: aws.Bool(true)})
	switch {
	case failed(w, err):
	case out.Item == nil:
		http.NotFound(w, r)
	default:
		answer(w, http.StatusOK, orderOf(out.Item))
	}
}

func (o *orders) rename(w http.ResponseWriter, r *http.Request) {
	var in order
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" {
		http.Error(w, "which name?", http.StatusUnprocessableEntity)
		return
	}
	o.update(r.Context(), w, http.StatusOK, key(r), "SET #n = :v", map[string]string{"#n": "name"}, text(in.Name))
}

func (o *orders) remove(w http.ResponseWriter, r *http.Request) {
	_, err := o.client.DeleteItem(r.Context(), &dynamodb.DeleteItemInput{TableName: &o.table, Key: key(r)})
	if !failed(w, err) {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (o *orders) pay(w http.ResponseWriter, r *http.Request) {
	o.update(r.Context(), w, http.StatusCreated, key(r), "ADD payments :v", nil, &types.AttributeValueMemberN{Value: "1"})
}

func (o *orders) update(ctx context.Context, w http.ResponseWriter, status int, key item, update string, names map[string]string, v types.AttributeValue) {
	out, err := o.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &o.table, Key: key, UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: item{":v": v},
		ConditionExpression: aws.String("attribute_exists(id)"), ReturnValues: types.ReturnValueAllNew,
	})
	if !failed(w, err) {
		answer(w, status, orderOf(out.Attributes))
	}
}

func key(r *http.Request) item { return item{"id": text(chi.URLParam(r, "id"))} }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func orderOf(it item) (o order) {
	if v, ok := it["id"].(*types.AttributeValueMemberS); ok {
		o.ID = v.Value
	}
	if v, ok := it["name"].(*types.AttributeValueMemberS); ok {
		o.Name = v.Value
	}
	if v, ok := it["payments"].(*types.AttributeValueMemberN); ok {
		o.Payments = v.Value
	}
	return o
}

func failed(w http.ResponseWriter, err error) bool {
	if err != nil {
		log.Print(err)
		http.Error(w, "try again", http.StatusInternalServerError)
	}
	return err != nil
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
