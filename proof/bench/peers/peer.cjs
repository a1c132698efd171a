// Powertools for AWS Lambda (TypeScript): plays the scenario that each line of stdin names, and prints what it saw.
'use strict';

const {readFileSync} = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const {DynamoDBClient} = require('@aws-sdk/client-dynamodb');
const {IdempotencyConfig, makeIdempotent} = require('@aws-lambda-powertools/idempotency');
const {DynamoDBPersistenceLayer} = require('@aws-lambda-powertools/idempotency/dynamodb');

console.warn = () => {};

const {PEER_TABLE: TABLE} = process.env;
const client = new DynamoDBClient();

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const context = (ms = 30_000) => {
  const end = Date.now() + ms;
  return {getRemainingTimeInMillis: () => Math.max(0, end - Date.now())};
};
const store = () => new DynamoDBPersistenceLayer({tableName: TABLE, awsSdkV3Client: client});
const config = () => new IdempotencyConfig({
  eventKeyJmesPath: 'headers."idempotency-key"', payloadValidationJmesPath: 'body', throwOnNoIdempotencyKey: true,
});
const event = (key) => ({
  version: '2.0', routeKey: 'POST /orders', rawPath: '/orders',
  headers: {'content-type': 'application/json', 'idempotency-key': key},
  requestContext: {http: {method: 'POST', path: '/orders'}},
  body: '{"amount":2000}', isBase64Encoded: false,
});
const answer = (body, statusCode = 201) => ({statusCode, headers: {'content-type': 'application/json', location: '/orders/1'}, body});

// installed is the version of a package: not every package shows its package.json to require.
const installed = (name) => JSON.parse(readFileSync(path.join(process.env.NODE_PATH, name, 'package.json'), 'utf8')).version;

async function run(fn, key, ctx = context(), more = {}) {
  try {
    const got = await fn({...event(key), ...more}, ctx);
    return `${got.statusCode}, ${got.body.slice(0, 30)}`;
  } catch (e) {
    return e.name;
  }
}
const wrap = (body, options = {}) => makeIdempotent(async (e, _context) => body(e), {persistenceStore: store(), config: config(), ...options});

async function late(fails) {
  const runs = [];
  const began = Promise.withResolvers?.() ?? resolvers();
  const finish = Promise.withResolvers?.() ?? resolvers();
  const body = async (e) => {
    runs.push(e.who);
    if (e.who === 'the first') {
      began.resolve();
      await finish.promise;
      if (fails) throw new Error('failed late');
    }
    return answer(`by ${e.who}`);
  };
  const key = `late-${fails}`;
  const first = run(wrap(body), key, context(50), {who: 'the first'});
  await began.promise;
  await sleep(100); // its time, and so its lease, is over
  const second = await run(wrap(body), key, context(), {who: 'the second'});
  finish.resolve();
  const got = await first;
  const retry = await run(wrap(body), key, context(), {who: 'the retry'});
  return {answers: [['the second', second], ['the first, late', got], ['a retry', retry]], runs: runs.length};
}

function resolvers() {
  const r = {};
  r.promise = new Promise((resolve) => { r.resolve = resolve; });
  return r;
}

async function nested() {
  const runs = [], persistenceStore = store();
  const inner = makeIdempotent(async () => {
    runs.push('inner');
    return answer('the inner answer');
  }, {persistenceStore, config: config(), keyPrefix: 'inner'});
  const outer = makeIdempotent(async (e, _context) => {
    runs.push('outer');
    await inner(e);
    return answer('the outer answer');
  }, {persistenceStore, config: config(), keyPrefix: 'outer'});
  return {answers: [
    ['the outer call', await run(outer, 'nested')], ['a retry of the outer', await run(outer, 'nested')],
    ['a retry of the inner', await run(inner, 'nested')]], runs: runs.length};
}

async function large() {
  let runs = 0;
  const h = wrap(() => {
    runs++;
    return answer('x'.repeat(401 << 10));
  });
  const first = await run(h, 'large-1'), atOnce = await run(h, 'large-1');
  runs = 0;
  await run(h, 'large-2', context(50));
  await sleep(100);
  return {answers: [['first', first], ['a retry at once', atOnce], ['a retry after the lease', await run(h, 'large-2')]], runs};
}

async function swallowed() {
  let runs = 0;
  const h = wrap(() => (++runs === 1 ? answer('the provider is down', 500) : answer('paid')));
  return {answers: [['first', await run(h, '500')], ['a retry, the provider is up', await run(h, '500')]], runs};
}

const plays = {
  hello: () => ({
    version: installed('@aws-lambda-powertools/idempotency'),
    sdk: `AWS SDK for JavaScript ${installed('@aws-sdk/client-dynamodb')}`, runtime: `Node.js ${process.version.slice(1)}`,
  }),
  'late finisher': () => late(false), 'late failure': () => late(true), nested, large, 500: swallowed,
};

(async () => {
  for await (const line of readline.createInterface({input: process.stdin})) {
    const said = JSON.parse(line);
    let seen;
    try {
      seen = await plays[said.do]();
    } catch (e) {
      seen = {error: `${e.name}: ${e.message}`};
    }
    process.stdout.write(`${JSON.stringify(seen)}\n`);
  }
})();
