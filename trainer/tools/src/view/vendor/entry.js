// The parts of three.js and uPlot that the pages use, as one global, `Vendor`.
export {
  AmbientLight, BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, Color, ConeGeometry, CubeTexture,
  CylinderGeometry, DataTexture, DirectionalLight, DoubleSide, FogExp2, Group, HemisphereLight,
  InstancedMesh, Line, LineBasicMaterial, LineSegments, LinearSRGBColorSpace, Matrix4, Mesh,
  MeshBasicMaterial, MeshStandardMaterial, PCFShadowMap, PerspectiveCamera, Plane, PlaneGeometry,
  Quaternion, Raycaster, RepeatWrapping, SRGBColorSpace, Scene, ShaderMaterial, SphereGeometry,
  UniformsLib, UniformsUtils, ShadowMaterial, Texture, Vector2, Vector3, WebGLRenderer, GridHelper,
} from 'three';
export { OrbitControls } from 'three/addons/controls/OrbitControls.js';
export { default as uPlot } from 'uplot';
