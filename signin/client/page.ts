import { messagesOf } from '../messages.ts';
import type { Messages } from '../messages-en.ts';
import { contextOf, type OAuthContext, pathWith } from '../oauth-context.ts';
import { clientAddress, ownPath } from './destination.ts';
import { ApiProblem, type IdentityApi } from './identity-api.ts';

/** The step on screen: its address, its words, the service behind it, and the ways out of it. */
export class Page {
  readonly api: IdentityApi;
  readonly m: Messages = messagesOf(document.documentElement.lang);
  readonly query: Record<string, string> = Object.fromEntries(new URLSearchParams(location.search));
  readonly oauth: OAuthContext = contextOf(this.query);
  /** The token of a mail's link. Behind `#`, it never left the browser until the button is pressed (H-08). */
  readonly token: string | undefined = new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined;

  constructor(api: IdentityApi) {
    this.api = api;
  }

  find<T extends HTMLElement>(selector: string, root: ParentNode = document): T | null {
    return root.querySelector<T>(selector);
  }

  /** Always a full page load. */
  go(next: string | undefined): void {
    const path = ownPath(next, location.origin);
    if (!path) throw new ApiProblem(0, { code: 'unexpected' }, '');
    location.assign(path);
  }

  goTo(step: string, more: Record<string, string | undefined> = {}): void {
    location.assign(this.linkTo(step, more));
  }

  linkTo(step: string, more: Record<string, string | undefined> = {}): string {
    return pathWith(`/${step}`, this.query, more);
  }

  leave(redirectTo: string): void {
    const address = clientAddress(redirectTo, location.origin, this.oauth.redirect_uri);
    if (!address) throw new ApiProblem(0, { code: 'unexpected' }, '');
    location.assign(address);
  }

  say(text: string): void {
    const notice = this.find('[data-notice]');
    if (!notice) return;
    notice.textContent = text;
    notice.hidden = false;
    notice.tabIndex = -1;
    notice.focus();
  }
}
