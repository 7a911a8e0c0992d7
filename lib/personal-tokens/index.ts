/**
 * Personal access tokens: long-lived tokens that people make for their scripts and jobs. Loaded only where they are on.
 * @module
 */
export { PERSONAL_CLIENT_ID, createPersonalRule } from './rule.ts'
export { type PersonalTokenService, createPersonalTokens } from './personal-tokens.ts'
