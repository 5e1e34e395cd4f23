import { type PlatformCommand, verbs } from '@platform/sdk';
import { clientCert } from './client-cert.ts';
import { list } from './list.ts';
import { revoke } from './revoke.ts';
import { verify } from './verify.ts';

/** `platform ca …`: what an operator on the machine asks the certificate authority for (CA-071). */
const command: PlatformCommand = verbs({ 'client-cert': clientCert, list, revoke, verify });
export default command;
