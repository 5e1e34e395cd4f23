import type { Authorization, Order } from './orders.ts';

/** The wire forms of an order and its parts (RFC 8555, 7.1). */
export const orderUrl = ({ order_id: id }: Order, origin: string): string => `${origin}/acme/order/${id}`;
const authorizationUrl = ({ order_id: id }: Order, index: number, origin: string) => `${origin}/acme/authz/${id}.${index}`;

export function orderBody(order: Order, origin: string): object {
  const { status, expires, identifiers, identifier, classification, not_before, not_after, replaces, certificate_id, error } = order;
  return {
    status,
    expires,
    identifiers,
    identifier,
    classification,
    ...(not_before ? { notBefore: not_before } : {}),
    ...(not_after ? { notAfter: not_after } : {}),
    ...(replaces ? { replaces } : {}),
    authorizations: order.authorizations.map((_, index) => authorizationUrl(order, index, origin)),
    finalize: `${orderUrl(order, origin)}/finalize`,
    ...(certificate_id && status === 'valid' ? { certificate: `${origin}/acme/cert/${certificate_id}` } : {}),
    ...(error ? { error } : {}),
  };
}

export function authorizationBody(order: Order, index: number, origin: string): object {
  const { identifier, wildcard, status } = order.authorizations[index] as Authorization;
  return {
    status,
    expires: order.expires,
    identifier: wildcard ? { ...identifier, value: identifier.value.slice(2) } : identifier,
    challenges: [challengeBody(order, index, origin)],
    ...(wildcard ? { wildcard: true } : {}),
  };
}

/** HTTP-01 is the one there is (CA-030). */
export function challengeBody(order: Order, index: number, origin: string): object {
  const { token, status, validated, error } = (order.authorizations[index] as Authorization).challenge;
  return {
    type: 'http-01',
    url: `${origin}/acme/challenge/${order.order_id}.${index}`,
    token,
    status,
    ...(validated ? { validated } : {}),
    ...(error ? { error } : {}),
  };
}

export const challengeUp = (order: Order, index: number, origin: string): string => `<${authorizationUrl(order, index, origin)}>;rel="up"`;
