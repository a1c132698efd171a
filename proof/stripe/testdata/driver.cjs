// Does by Stripe's official client for Node what each line of stdin says, and prints what its user sees of it.
'use strict';

const Stripe = require('stripe');

async function call(c) {
  const base = new URL(c.url);
  const stripe = new Stripe('sk_test_' + c.account, {
    host: base.hostname, port: base.port, protocol: 'http', maxNetworkRetries: c.retries, telemetry: false,
  });
  const params = {amount: c.amount, currency: 'usd', description: c.play};
  const options = c.key ? {idempotencyKey: c.key} : {};
  if (c.call === 'delete') {
    return c.v2 ? stripe.rawRequest('DELETE', '/v2/core/customers/cus_1', undefined, options) : stripe.customers.del('cus_1', options);
  }
  return c.v2 ? stripe.rawRequest('POST', '/v2/payment_intents', params, options) : stripe.paymentIntents.create(params, options);
}

async function run(c) {
  const seen = {n: c.n};
  try {
    const got = await call(c);
    Object.assign(seen, {id: got.id, headers: got.lastResponse.headers});
  } catch (e) {
    if (!(e instanceof Stripe.errors.StripeError)) throw e;
    Object.assign(seen, {error: e.type, status: e.statusCode || 0, code: e.code || '', request: e.requestId || '', headers: e.headers || {}});
  }
  console.log(JSON.stringify(seen));
}

require('readline').createInterface({input: process.stdin}).on('line', (line) => run(JSON.parse(line)));
