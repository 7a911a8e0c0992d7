import type { ErrorCode } from '../lib/errors.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { UpstreamError, type UpstreamRefusal } from '../lib/upstreams/failure.ts'
import { PageError } from './pages.ts'

/** The text for each reason why a sign-in with another provider came to nothing. */
export const REFUSALS: Record<UpstreamRefusal, Message> = {
  refused: ({ upstreams }) => upstreams.refused,
  off: ({ upstreams }) => upstreams.off,
  over: ({ upstreams }) => upstreams.over,
  down: ({ upstreams }) => upstreams.down,
  stale: ({ upstreams }) => upstreams.stale,
  unrenewed: ({ upstreams }) => upstreams.unrenewed,
  busy: ({ upstreams }) => upstreams.busy,
  tenant: ({ upstreams }) => upstreams.tenant,
  domain: ({ upstreams }) => upstreams.domain,
  unknown: ({ upstreams }) => upstreams.unknown,
  no_address: ({ upstreams }) => upstreams.noAddress,
  taken: ({ upstreams }) => upstreams.taken,
  roles: ({ upstreams }) => upstreams.roles,
  restricted: ({ account }) => account.restricted
}

/** The text for a refusal. With the name of an identity that an administrator can let in. */
const toText = ({ refusal, subject }: UpstreamError): Message =>
  subject === undefined ? REFUSALS[refusal] : ({ upstreams }) => upstreams.takenByOther({ subject })

function toCode ({ refusal }: UpstreamError): ErrorCode {
  if (refusal === 'down') return 'ErrRsc'
  if (refusal === 'busy') return 'ErrBusy'
  return refusal === 'off' ? 'ErrNotFound' : 'ErrPerm'
}

/** The page for such a reason, with a way back: to the sign-in, if no other text is given. */
export function toPageError (error: unknown, back?: string, text: Message = ({ common }) => common.goBackToSignIn): unknown {
  if (!(error instanceof UpstreamError)) return error
  return new PageError(toCode(error), error.message, toText(error), back === undefined ? [] : [{ to: back, text }], { cause: error })
}

/** The same, for a person who has come by a link of ours. They open it again. */
export function toLinkError (error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error
  return new PageError(toCode(error), error.message, (texts) => `${REFUSALS[error.refusal](texts)} ${texts.upstreams.linkStays}`, [], { cause: error })
}
