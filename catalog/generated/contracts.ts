/** Written by scripts/golden.ts from catalog/platform.json. */
export { appStore } from '@platform/app-store/contract';
export { certificateAuthority } from '@platform/certificate-authority/contract';
export { eventBus } from '@platform/event-bus/contract';
export { functions } from '@platform/functions/contract';
export { gateway } from '@platform/gateway/contract';
export { identity } from '@platform/identity/contract';
export { ingress } from '@platform/ingress/contract';
export { notification } from '@platform/notification/contract';
export { registry } from '@platform/registry/contract';
export { scheduler } from '@platform/scheduler/contract';
export { statistics } from '@platform/statistics/contract';
export { storage } from '@platform/storage/contract';
export { supervisor } from '@platform/supervisor/contract';
export { web } from '@platform/web/contract';
export { workflow } from '@platform/workflow/contract';
