import { HeadObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Readable } from 'node:stream';
import { AwsClient } from 'aws4fetch';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bucketOf, S3Blobs } from '../src/blobs/s3-blobs.ts';
import { signed } from '../src/blobs/signature.ts';
import { s3rver } from './fixtures/npm-buckets.ts';
import { KEY, REGION, StrictBucket } from './fixtures/strict-bucket.ts';

let bucket: StrictBucket;
beforeAll(async () => {
  bucket = await StrictBucket.start();
});
afterAll(() => bucket[Symbol.asyncDispose]());

const sdk = (secret = KEY.secret) =>
  new S3Client({
    endpoint: bucket.origin,
    region: REGION,
    forcePathStyle: true,
    credentials: { accessKeyId: KEY.id, secretAccessKey: secret },
    maxAttempts: 1,
  });

test('the official client reads what it wrote, in one piece and as a stream, and is told by conditions', async () => {
  const [client, body] = [sdk(), Buffer.alloc(140_000, 'x')];
  await client.send(new PutObjectCommand({ Bucket: 'things', Key: 'a b/ö+1', Body: body, IfNoneMatch: '*' }));
  await expect(client.send(new PutObjectCommand({ Bucket: 'things', Key: 'a b/ö+1', Body: body, IfNoneMatch: '*' }))).rejects.toMatchObject(
    { $metadata: { httpStatusCode: 412 } },
  );
  await client.send(
    new PutObjectCommand({
      Bucket: 'things',
      Key: 'streamed',
      Body: Readable.from([body.subarray(0, 70_000), body.subarray(70_000)]),
      ContentLength: body.length,
    }),
  );
  const { Body, ContentRange } = await client.send(new GetObjectCommand({ Bucket: 'things', Key: 'streamed', Range: 'bytes=5-9' }));
  expect([await Body?.transformToString(), ContentRange]).toEqual(['xxxxx', 'bytes 5-9/140000']);
  expect((await client.send(new HeadObjectCommand({ Bucket: 'things', Key: 'streamed' }))).ContentLength).toBe(140_000);
  expect((await client.send(new ListObjectsV2Command({ Bucket: 'things' }))).Contents?.map(({ Key }) => Key)).toEqual([
    'a b/ö+1',
    'streamed',
  ]);
});

test('a wrong secret, no signature and other bytes than were signed are refused', async () => {
  await expect(sdk('another').send(new GetObjectCommand({ Bucket: 'things', Key: 'streamed' }))).rejects.toMatchObject({
    Code: 'SignatureDoesNotMatch',
  });
  expect((await fetch(`${bucket.origin}/things/streamed`)).status).toBe(403);
  const aws = new AwsClient({ accessKeyId: KEY.id, secretAccessKey: KEY.secret, region: REGION, service: 's3' });
  const request = await aws.sign(`${bucket.origin}/things/tampered`, {
    method: 'PUT',
    body: 'one',
    headers: { 'x-amz-content-sha256': '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed' },
  });
  expect((await fetch(new Request(request, { body: 'two' }))).status).toBe(400);
});

test('our signature is the one that another signer makes', async () => {
  const [at, bodyHash] = [new Date(), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'];
  const aws = new AwsClient({ accessKeyId: KEY.id, secretAccessKey: KEY.secret, region: REGION, service: 's3' });
  const ours = signed(
    {
      method: 'GET',
      host: 's3.example.com',
      path: '/things/a%20b%2Bc',
      query: { 'list-type': '2', prefix: 'f/ü' },
      headers: { range: 'bytes=0-1' },
      bodyHash,
    },
    KEY,
    REGION,
    at,
  );
  const theirs = await aws.sign('https://s3.example.com/things/a%20b%2Bc?list-type=2&prefix=f%2F%C3%BC', {
    headers: { range: 'bytes=0-1', 'x-amz-content-sha256': bodyHash },
    aws: { datetime: ours['x-amz-date'] as string, allHeaders: true },
  });
  expect(ours['authorization']).toBe(theirs.headers.get('authorization'));
});

test('s3rver, which checks signatures too, takes ours and none that another secret made', async () => {
  await using server = await s3rver();
  await server.lay('kept', Buffer.from('0123456789'), new Date());
  const bucket = bucketOf(`${server.origin}/things?region=${REGION}`, false);
  const opened = async (secret: string) => {
    await using blobs = new S3Blobs(bucket as NonNullable<typeof bucket>, async () => ({ id: server.key.id, secret }));
    return Buffer.concat((await (await blobs.open('kept', { start: 2, end: 4 }))?.toArray()) ?? []).toString();
  };
  expect(await opened(server.key.secret)).toBe('234');
  await expect(opened('another')).rejects.toMatchObject({ status: 403 });
});
