import { CibaNotice } from '../approvals/ciba-notice.ts';
import { Consents } from '../approvals/consents.ts';
import { PollPace } from '../approvals/poll-pace.ts';
import { Applications } from '../clients/applications.ts';
import { ClientDirectory } from '../clients/client-directory.ts';
import { ClientRegistration } from '../clients/client-registration.ts';
import { RegisteredClients } from '../clients/registered-clients.ts';
import { RegistrationEndpoint } from '../clients/registration-endpoint.ts';
import { RegisteredHomes } from '../clients/vertical-homes.ts';
import { Protocol } from '../protocol/protocol.ts';
import { TokenExchange } from '../protocol/tokens/token-exchange.ts';
import type { Ctx } from '../context.ts';
import type { GroundParts } from './ground-parts.ts';

/** Clients, what people agreed to for them, and the protocol that they speak. */
export function clientParts(ctx: Ctx, ground: GroundParts) {
  const { access, attempts, box, invited, keys, mailbox, people, realms, sessions, tokens, workloads } = ground;
  const registered = new RegisteredClients(ctx);
  const clients = new ClientDirectory(ctx, { workloads, registered });
  const consents = new Consents(ctx, { clients, realms });
  const protocol = new Protocol(ctx, {
    access,
    attempts,
    box,
    clients,
    consents,
    exchange: new TokenExchange(ctx, { access, keys, realms, tokens }),
    invited,
    keys,
    notice: new CibaNotice(ctx, { attempts, clients, mailbox, people }),
    pace: new PollPace(ctx),
    people,
    realms,
    sessions,
    tokens,
    workloads,
  });
  const homes = new RegisteredHomes(ctx);
  const validate: Protocol['validate'] = (envId, metadata) => protocol.validate(envId, metadata);
  const registration = new ClientRegistration(ctx, { clients: registered, homes, realms, sessions, validate });
  const own = { attempts, clients: registered, directory: clients, homes, registration, realms, tokens, workloads };
  return {
    applications: new Applications(ctx, { clients: registered, homes, realms, registration }),
    clients,
    consents,
    protocol,
    registered,
    registration,
    registrationEndpoint: new RegistrationEndpoint(ctx, own),
  };
}
export type ClientParts = ReturnType<typeof clientParts>;
