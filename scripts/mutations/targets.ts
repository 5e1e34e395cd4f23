/** Source files whose behaviour matters most, each with the tests that should notice when it changes; the quickest first. */
export interface Target {
  readonly file: string;
  readonly tests: readonly string[];
}

const KERNEL_IDENTITY = [
  'kernel/identity/tokens/authentication.test.ts',
  'kernel/identity/tokens/callers.test.ts',
  'kernel/identity/tokens/issuers.test.ts',
  'kernel/http/requests.test.ts',
  'kernel/http/changes.test.ts',
  'kernel/http/doors/doors.test.ts',
];

const KERNEL_REQUESTS = [
  'kernel/http/requests.test.ts',
  'kernel/http/changes.test.ts',
  'kernel/http/doors/doors.test.ts',
  'kernel/identity/tokens/authentication.test.ts',
  'kernel/identity/tokens/callers.test.ts',
];

export const TARGETS: readonly Target[] = [
  { file: 'plugins/supervisor/src/life/instance-life.ts', tests: ['plugins/supervisor/test/instance-life.test.ts'] },
  { file: 'kernel/host/process/local-process-host.ts', tests: ['kernel/host/process/local-process-host.test.ts'] },
  { file: 'kernel/host/machine/data-dir-lock.ts', tests: ['kernel/host/machine/data-dir-lock.test.ts'] },
  { file: 'kernel/host/keys/service-keys.ts', tests: ['kernel/host/keys/service-keys.test.ts'] },
  { file: 'kernel/host/plugin/plugin-watch.ts', tests: ['kernel/host/plugin/plugin-watch.test.ts'] },
  {
    file: 'kernel/storage/valkey/journal/journal.ts',
    tests: ['kernel/storage/valkey/journal/journal.test.ts', 'kernel/storage/valkey/embedded-valkey.test.ts'],
  },
  { file: 'kernel/storage/valkey/whole-commands.ts', tests: ['kernel/storage/valkey/journal/journal.test.ts'] },
  {
    file: 'kernel/storage/valkey/write-stream.ts',
    tests: ['kernel/storage/valkey/journal/journal.test.ts', 'kernel/storage/valkey/embedded-valkey.test.ts'],
  },
  { file: 'kernel/identity/certificates/trust-anchors.ts', tests: ['kernel/identity/certificates/trust-anchors.test.ts'] },
  {
    file: 'kernel/identity/certificates/authority.ts',
    tests: [
      'kernel/identity/certificates/trust-anchors.test.ts',
      'kernel/identity/workload.test.ts',
      'plugins/certificate-authority/test/mint.test.ts',
    ],
  },
  { file: 'kernel/identity/tokens/verifier.ts', tests: KERNEL_IDENTITY },
  { file: 'kernel/identity/tokens/signed-token.ts', tests: KERNEL_IDENTITY },
  { file: 'kernel/identity/tokens/dpop-proof.ts', tests: KERNEL_IDENTITY },
  { file: 'kernel/http/operation.ts', tests: KERNEL_REQUESTS },
  { file: 'kernel/http/doors/opened-request.ts', tests: KERNEL_REQUESTS },
  { file: 'plugins/gateway/src/session/guard.ts', tests: ['plugins/gateway/test/proxy.test.ts', 'plugins/gateway/test/sessions.test.ts'] },
  { file: 'plugins/gateway/src/proxy/service-proxy.ts', tests: ['plugins/gateway/test/proxy.test.ts'] },
  {
    file: 'plugins/identity/src/sign-in/page-guard.ts',
    tests: ['plugins/identity/test/protocol/authorization.test.ts', 'plugins/identity/test/sign-in/sign-in.test.ts'],
  },
  {
    file: 'plugins/identity/src/protocol/tokens/token-exchange.ts',
    tests: ['plugins/identity/test/protocol/machines.test.ts', 'plugins/identity/test/protocol/given-tokens.test.ts'],
  },
  {
    file: 'plugins/identity/src/protocol/protocol-state.ts',
    tests: ['plugins/identity/test/protocol/authorization.test.ts', 'plugins/identity/test/protocol/given-tokens.test.ts'],
  },
  {
    file: 'plugins/event-bus/src/inbox/inbox.ts',
    tests: [
      'plugins/event-bus/test/consume/inbox-group.test.ts',
      'plugins/event-bus/test/consume/once-only.test.ts',
      'plugins/event-bus/test/produce/event.test.ts',
      'plugins/event-bus/test/produce/batch.test.ts',
      'plugins/event-bus/test/retention.test.ts',
    ],
  },
  { file: 'plugins/certificate-authority/src/certificates.ts', tests: ['plugins/certificate-authority/test/mint.test.ts'] },
  { file: 'kernel/http/paging.ts', tests: ['kernel/http/paging.test.ts'] },
];
