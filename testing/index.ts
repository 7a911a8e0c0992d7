/**
 * The service for test suites: in this process with a store in memory, or on a socket for suites in other languages. It mints any
 * token on request, and tests control its clock. Do not use it in production, because anyone who can reach a kit gets any token.
 * @module
 */
export type { AgentAnswer, AgentRequest, AgentTokens, TestAgent } from './agent.ts'
export { createTestClock, type TestClock } from './clock.ts'
export { type Mails, type TestMail } from './mails.ts'
export { createMint, type Mint, type Minted, type MintRequest } from './mint.ts'
export { emptyStore, startIdentity, type StartOptions, type TestKit, type TestLike } from './kit.ts'
export type { AnswerChanges, AuthenticatorSettings } from './authenticator.ts'
export type { EnrolPasskey, TestPasskey } from './passkey.ts'
export type { AddSecret, TestSecret } from './secret.ts'
export type { EnterConsole, TestConsole } from './console.ts'
export type { AddPersonalToken, TestPersonalToken } from './personal-token.ts'
export type { AddServiceToken, TestServiceToken } from './service-token.ts'
export type { EnrolTotp, TestTotp } from './totp.ts'
export { type TestUpstream, type UpstreamClaims, createTestUpstream } from './upstream.ts'
export { type TestReceiver, type TestWebhookMessage, type TestWebhooks } from './webhooks.ts'
export { serveTesting, type ServeOptions, type TestServer } from './server.ts'
