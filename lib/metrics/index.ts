export { measure } from './measure.ts'
export { watchSignIns, watchTokens } from './watch-services.ts'
