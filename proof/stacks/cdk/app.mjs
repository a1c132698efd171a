// Synthesizes an application that includes the stack as docs/operate/deploying.md shows it, and compares the CDK's template with
// the stack's own: `node app.mjs FOLDER`, with samekey-standalone.yaml, dist/orders and dist/samekey-worker in FOLDER.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {
  App, ArnFormat, Stack, aws_iam as iam, aws_lambda as lambda, aws_s3_assets as s3assets, aws_sqs as sqs, cloudformation_include as cfninc,
} from 'aws-cdk-lib';

class Orders extends Stack {
  constructor(scope, id) {
    super(scope, id);
    const receipts = new sqs.Queue(this, 'Receipts');
    const orders = new lambda.Function(this, 'Orders', {
      functionName: 'orders', runtime: lambda.Runtime.PROVIDED_AL2023, handler: 'bootstrap', code: lambda.Code.fromAsset('dist/orders'),
    });
    const worker = new s3assets.Asset(this, 'Worker', {path: 'dist/samekey-worker'});
    const samekey = new cfninc.CfnInclude(this, 'Samekey', {
      templateFile: 'samekey-standalone.yaml',
      parameters: {
        CodeBucket: worker.s3BucketName, CodeKey: worker.s3ObjectKey,
        Functions: [this.formatArn({service: 'lambda', resource: 'function', resourceName: 'orders', arnFormat: ArnFormat.COLON_RESOURCE_NAME})],
        Sinks: `send_receipt=sqs:${receipts.queueUrl}`, SinkArns: [receipts.queueArn],
      },
    });
    orders.addEnvironment('IDEM_TABLE', samekey.getResource('Table').ref);
    orders.addEnvironment('SAMEKEY_APP', this.stackName);
    orders.role.addManagedPolicy(iam.ManagedPolicy.fromManagedPolicyArn(this, 'Records', samekey.getResource('FunctionPolicy').ref));
  }
}

process.chdir(process.argv[2]);
const app = new App({outdir: 'cdk.out'});
new Orders(app, 'Shop');
const made = app.synth().getStackByName('Shop').template;

// The CDK's validation finds no error. (It warns of defaults that a condition keeps from being used.)
const report = JSON.parse(readFileSync('cdk.out/validation-report.json', 'utf8'));
const broken = report.pluginReports.flatMap((r) => r.violations).filter((v) => !v.ruleName.startsWith('W'));
assert.deepEqual(broken.map((v) => v.description), []);

// Every resource of the stack is there, under its own name.
const types = (text) => Object.fromEntries([...text.slice(text.indexOf('\nResources:')).matchAll(/^ {2}(\w+):\n(?: {4}.*\n| *#.*\n)*? {4}Type: (\S+)$/gm)].map((m) => [m[1], m[2]]));
const want = types(readFileSync('samekey-standalone.yaml', 'utf8'));
assert.ok(Object.keys(want).length > 30, `the template has only ${Object.keys(want).length} resources: something is wrong with this check`);
for (const [id, type] of Object.entries(want)) assert.equal(made.Resources[id]?.Type, type, id);

// The function has the table, the application that alarms name and the policy, and the worker the function.
const orders = Object.values(made.Resources).find((r) => r.Type === 'AWS::Lambda::Function' && r.Properties.FunctionName === 'orders');
assert.deepEqual(orders.Properties.Environment.Variables, {IDEM_TABLE: {Ref: 'Table'}, SAMEKEY_APP: 'Shop'});
const role = made.Resources[orders.Properties.Role['Fn::GetAtt'][0]];
assert.ok(role.Properties.ManagedPolicyArns.some((arn) => arn.Ref === 'FunctionPolicy'), 'the function has no policy for its records');
assert.match(JSON.stringify(made.Resources.ResumePolicy), /:function:orders/);
console.log(`${Object.keys(want).length} resources of the stack are in ${Object.keys(made.Resources).length} of the application`);
