import { commandOf, readArguments } from '@platform/sdk';

const USAGE = `platform ca revoke CERTIFICATE_ID [--reason N]

  Every service and the ingress refuse the certificate within seconds. It cannot be taken back.

  --reason N   as RFC 5280 has it: 0 unspecified, 1 its key is known to others, 4 another one took its place, 5 no longer in use`;

/** `platform ca revoke`. */
export const revoke = commandOf<{ id: string; reason: number }>({
  usage: USAGE,

  read(args) {
    const { options, rest } = readArguments(args, ['reason']);
    const [id, ...more] = rest;
    if (id === undefined || !/^[0-9a-f-]{36}$/.test(id) || more.length > 0 || !/^(?:\d|10)$/.test(options.reason ?? '0')) return undefined;
    return { id, reason: Number(options.reason ?? 0) };
  },

  async run({ id, reason }, operator) {
    const {
      domain,
      serial,
      revoked_at: at,
    } = await operator.call<{ domain: string; serial: string; revoked_at: string }>('acme', 'POST', `/v1/admin/certificates/${id}/revoke`, {
      body: { reason },
    });
    operator.print(`${domain} (serial ${serial}) is revoked since ${at}`);
    return 0;
  },
});
