import type { GatewayClient } from './gateway/gateway-client.ts';
import { invitationReference } from './invitation-reference.ts';
import type { Page } from './registry-api.ts';

export type Level = 'owner' | 'admin' | 'viewer';
export interface Member {
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string | null;
  readonly access: Level;
  readonly joined_at: string;
}
export interface Invitation {
  readonly invitation_id: string;
  readonly org_id: string;
  readonly email: string;
  readonly access: Level;
  readonly status: 'pending' | 'accepted' | 'revoked';
  readonly expires_at: string;
  readonly created_at: string;
}

/** What an invitation says to its recipient. */
export interface ShownInvitation {
  readonly org_name: string;
  readonly inviter: string | null;
  readonly access: Level;
  readonly status: Invitation['status'];
}

const PAGE = 100;
const at = (org: string, ...rest: readonly string[]) => `/v1/org/${[org, ...rest].map(encodeURIComponent).join('/')}`;

/** Members and invitations of organizations, through the gateway. */
export class MembersApi {
  readonly #client: GatewayClient;
  readonly #service: string;

  constructor(client: GatewayClient, service: string) {
    this.#client = client;
    this.#service = service;
  }

  /** The first `pages` pages in one list; `next_cursor` says whether there are more. */
  members(org: string, pages: number, signal?: AbortSignal): Promise<Page<Member>> {
    return this.#pages(at(org, 'memberships'), org, pages, {}, signal);
  }

  change(org: string, user: string, access: Level): Promise<Member> {
    return this.#client.call(this.#service, at(org, 'memberships', user), { method: 'PUT', body: { access }, target: { org } });
  }

  remove(org: string, user: string): Promise<void> {
    return this.#client.call(this.#service, at(org, 'memberships', user), { method: 'DELETE', target: { org } });
  }

  pending(org: string, pages: number, signal?: AbortSignal): Promise<Page<Invitation>> {
    return this.#pages(at(org, 'invitations'), org, pages, { status: 'pending' }, signal);
  }

  invite(org: string, email: string, access: Level): Promise<Invitation> {
    return this.#client.call(this.#service, at(org, 'invitations'), { method: 'POST', body: { email, access }, target: { org } });
  }

  revoke(org: string, invitation: string): Promise<Invitation> {
    return this.#client.call(this.#service, at(org, 'invitations', invitation, 'revoke'), { method: 'POST', target: { org } });
  }

  async shown(token: string, signal?: AbortSignal): Promise<ShownInvitation> {
    return this.#client.call(this.#service, `/v1/invitations/${await invitationReference(token)}`, { signal });
  }

  accept(org: string, token: string): Promise<{ readonly group: string }> {
    return this.#client.call(this.#service, at(org, 'invitations', 'accept'), { method: 'POST', body: { token } });
  }

  async #pages<T>(path: string, org: string, pages: number, query: Readonly<Record<string, string>>, signal: AbortSignal | undefined): Promise<Page<T>> {
    const items: T[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < pages; page++) {
      const answer: Page<T> = await this.#client.call(this.#service, path, { query: { ...query, limit: PAGE, cursor: cursor ?? undefined }, target: { org }, signal });
      items.push(...answer.items);
      cursor = answer.next_cursor;
      if (cursor === null) break;
    }
    return { items, next_cursor: cursor };
  }
}
