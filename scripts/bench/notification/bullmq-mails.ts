import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { peerPackage } from '../bus/peers/peer-package.ts';
import type { PeerMails } from './mail-cost.ts';

interface Bullmq {
  readonly Queue: new (name: string, options: object) => { addBulk(jobs: readonly object[]): Promise<unknown>; close(): Promise<void> };
  readonly Worker: new (
    name: string,
    work: (job: { readonly data: { readonly to: string } }) => Promise<unknown>,
    options: object,
  ) => { on(event: 'completed' | 'error', heard: () => void): void; run(): Promise<void>; close(): Promise<void> };
}
interface Nodemailer {
  createTransport(options: object): { sendMail(mail: object): Promise<unknown>; close(): void };
}

/** The peer: a queue of bullmq in Redis, its worker, and the library that sends our own mail. Tells the CPU that its process took for each. */
const { redisPort, smtpPort, mails, atOnce } = JSON.parse(process.argv[2] as string) as PeerMails;
const { Queue, Worker } = peerPackage('bullmq', '6.7.0').load<Bullmq>();
// The one that the service brings.
const ours = createRequire(fileURLToPath(new URL('../../../plugins/notification/package.json', import.meta.url)));
const { createTransport } = ours('nodemailer') as Nodemailer;
const connection = { host: '127.0.0.1', port: redisPort, maxRetriesPerRequest: null };
const queue = new Queue('mails', { connection });
await queue.addBulk(Array.from({ length: mails }, (_, n) => ({ name: 'mail', data: { to: `reader${n}@example.org` } })));
const transport = createTransport({
  host: '127.0.0.1',
  port: smtpPort,
  pool: true,
  maxConnections: 8,
  maxMessages: Infinity,
  ignoreTLS: true,
});
const text = 'It happened.';
const html = `<!doctype html><html><body><p>${text}</p></body></html>`;
const worker = new Worker(
  'mails',
  ({ data: { to } }) => transport.sendMail({ from: 'bench@example.com', to, subject: 'Hello', text, html }),
  { connection, concurrency: atOnce, autorun: false },
);
worker.on('error', () => undefined);
const over = Promise.withResolvers<void>();
let done = 0;
worker.on('completed', () => (done += 1) === mails && over.resolve());
const [before, began] = [process.cpuUsage(), performance.now()];
void worker.run();
await over.promise;
const { user, system } = process.cpuUsage(before);
process.send?.({ cpuUs: (user + system) / mails, perSecond: (mails * 1_000) / (performance.now() - began) });
await worker.close();
await queue.close();
transport.close();
process.disconnect?.();
